"""Examples on pages that are shown as run do run, and print the output shown; their connectors are valid for the
worker.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest
import requests

from connect.plugins.registry import load_plugins
from connect.validation.unknown_keys import unknown_keys
from connect.validation.validation import validate_connector
from tests.docs.test_clients import CLIENTS
from tests.support.pages import ROOT, Command, Shell, blocks, commands, id_of, pages
from tests.support.platform import RunningPlatform, running_platform, tidegate
from tidegate.cli import tidegate as command_line

DOCS = ROOT / "docs"
HELD_ELSEWHERE = {
    "cloud-kafka.md": "tests/docs/test_cloud_kafka.py",
    "README.md": "tests/docs/test_readme.py",
    "writing-connectors.md": "tests/connect/test_writing_connectors.py",
    "delta.md": "tests/connectors/delta/test_delta_sink.py",
    "iceberg.md": "tests/connectors/iceberg/test_docs.py",
    "kafka-client.md": "tests/broker/client/test_docs.py",
    "words.md": "tests/events/triggers/test_docs.py",
    "triggers.md": "tests/events/triggers/test_docs.py",
    "confluent-kafka.md": "tests/docs/test_clients.py",
    "schema-evolution.md": "tests/docs/test_clients.py",
    "kafka-python.md": "tests/docs/test_clients.py",
    "serde.md": "tests/registry/serde/test_docs.py",
    "data-source.md": "tests/pyspark_tidegate/test_docs.py",
    "spark/README.md": "tests/pyspark_tidegate/test_docs.py",
    "pipelines.md": "tests/pyspark_tidegate/test_pipelines.py",
    "spark-transform.md": "tests/connectors/spark/test_transforming.py",
}
"""Pages whose Python has its own test."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    with running_platform(tmp_path_factory.mktemp("docs")) as platform:
        yield platform


def follow(page: Path, folder: Path, before: Callable[[Shell, Command], None] = lambda shell, command: None) -> None:
    shell = Shell(folder, {"TIDEGATE_CONTEXTS": str(folder / ".contexts.json")})
    try:
        for block in blocks(page, "console"):
            for command in commands(block):
                before(shell, command)
                shell.run(command)
    finally:
        shell.stop()


@pytest.mark.servers
@pytest.mark.proof
def test_getting_started(tmp_path):
    follow(DOCS / "tutorial" / "getting-started.md", tmp_path)


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
def test_the_tutorial_of_an_hour(tmp_path):
    """The console shows the dead letter before it is sent back."""
    looked = []

    def look(shell: Shell, command: Command) -> None:
        if command.text.startswith("tidegate dlq replay"):
            page = requests.get(shell.here("http://127.0.0.1:8080/dead-letters"), timeout=60)
            assert page.ok and "rentals-dlq" in page.text, page.text
            looked.append(page.url)

    follow(DOCS / "tutorial" / "one-hour.md", tmp_path, look)
    assert len(looked) == 1


def test_writing_connectors(tmp_path):
    follow(DOCS / "how-to" / "writing-connectors.md", tmp_path)


def test_the_operating_examples_run(tmp_path):
    follow(DOCS / "how-to" / "operating.md", tmp_path)


@pytest.mark.proof
def test_the_security_examples_run(tmp_path):
    follow(DOCS / "how-to" / "secure.md", tmp_path)


@pytest.mark.proof
@pytest.mark.servers
def test_a_platform_moves_to_apache_kafka(tmp_path, apache_kafka):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    over_kafka = ("--bootstrap-servers", apache_kafka.bootstrap_servers)
    with running_platform(tmp_path / "here") as here, running_platform(tmp_path / "there", *over_kafka) as there:
        (tmp_path / "tidegate-data").symlink_to(here.data)
        (tmp_path / "cluster").symlink_to(there.data)
        shell = Shell(tmp_path, {})
        shell.run(Command("for n in 1 2 3; do echo '{\"id\": '$n'}'; done | tidegate produce parcels --create", "..."))
        for block in blocks(DOCS / "how-to" / "scale.md", "console"):
            for command in commands(block):
                shell.run(command)


@pytest.fixture
def on_platform(platform: RunningPlatform, tmp_path: Path):
    """A shell beside a running platform, whose data folder is where pages expect it."""
    (tmp_path / "tidegate-data").symlink_to(platform.data)
    (tmp_path / "lines").write_text("one\n")
    return Shell(
        tmp_path,
        {},
        addresses=platform.addresses,
        replaced={f"/tmp/{name}": str(tmp_path / name) for name in ("lines", "measures")},
    )


@pytest.mark.parametrize(
    "page",
    [
        "how-to/connect.md",
        *(
            pytest.param(f"how-to/{name}-on-the-command-line.md", marks=pytest.mark.proof)
            for name in ("connectors", "log")
        ),
        pytest.param("how-to/backup.md", marks=pytest.mark.proof),
        "how-to/registry.md",
        "explanation/schema-formats.md",
        "how-to/events-access.md",
        pytest.param("reference/cheat-sheet.md", marks=[pytest.mark.proof, pytest.mark.long]),
    ],
)
def test_a_page_about_a_component_that_runs(page, on_platform):
    for block in blocks(DOCS / page, "console"):
        for command in commands(block):
            on_platform.run(command)


@pytest.mark.parametrize("page", ["how-to/events.md", "how-to/registry.md"])
def test_python_beside_a_running_platform(page, on_platform, platform):
    tidegate(
        "events", "define", ROOT / "examples/platform-events/Order_Shipped__e.object-meta.xml", "--data", platform.data
    )
    before = len(platform.consume("Order_Shipped__e"))
    for block in blocks(DOCS / page, "python"):
        (on_platform.folder / "example.py").write_text(on_platform.here(block.text))
        on_platform.run(Command("python example.py", ""))
    assert len(platform.consume("Order_Shipped__e")) - before == (1 if page == "how-to/events.md" else 0)


VALIDATED_ELSEWHERE = {
    "examples/python-connector/arrivals.json": "its README does, where the plugin is installed",
    "examples/rest-feed/readings.json": "its plugin is in no worker's path; its README runs the suite",
    "examples/webhook-sink/alerts.json": "likewise",
    "examples/bank-alerts/bank-changes.json": "its README does, where its database is",
    "examples/bank-alerts/cases.json": "its README does, where its org listens",
    **dict.fromkeys(
        (
            f"examples/salesforce-round-trip/{name}.json"
            for name in ("accounts-sink", "account-changes", "opened", "opened-table", "org-changes")
        ),
        "its README does, where its org listens and its events are defined",
    ),
    "examples/page-views/lake-hdfs.json": "tests/examples/test_page_views.py does, where HDFS runs",
    "examples/page-views/lake-s3.json": "likewise",
    "examples/accounts-from-a-topic/accounts-sink.json": "needs an org; tests/examples looks at every other key",
}


def connectors() -> list[tuple[str, str]]:
    """Every connector that a page or an example shows, as (name of the file or block, text)."""
    files = [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in (ROOT / "examples").glob("*/*.json")]
    files += [(id_of(block), block.text) for page in pages() for block in blocks(page, "json")]
    return sorted(
        (source, text) for source, text in files if "connector.class" in text and source not in VALIDATED_ELSEWHERE
    )


@pytest.fixture
def at_hand(tmp_path, request):
    """Makes a connector's text speak of databases and folders that there are."""

    def replace(text: str) -> str:
        if '"reorders:' in text:
            shutil.copy(ROOT / "examples/reorders/reorders.py", tmp_path)
        if '"fraud:' in text:
            shutil.copytree(ROOT / "examples/payments-scored/triggers", tmp_path / "triggers")
        if '"views:' in text:
            shutil.copy(ROOT / "examples/page-views/views.py", tmp_path)
        if '"changes:' in text:
            shutil.copy(ROOT / "examples/wiki-edits/changes.py", tmp_path)
        if '"surge:' in text:
            shutil.copy(ROOT / "examples/taxi-surge/surge.py", tmp_path)
        text = text.replace("FOLDER", str(tmp_path)).replace("file:///data", f"file://{tmp_path}")
        text = text.replace("/lake/", f"{tmp_path}/").replace("file:///lake", f"file://{tmp_path}")
        if '/arrived"' in text:
            for name in ("arrived", "done"):
                (tmp_path / name).mkdir()
        if "/var/spool/" in text:
            for name in ("orders", "done"):
                (tmp_path / name).mkdir()
            text = text.replace("/var/spool/", f"{tmp_path}/")
        if '/spark-pipeline.yml"' in text:
            (tmp_path / "spark-pipeline.yml").write_text("name: flights\n")
            text = text.replace("/data/flights/", f"{tmp_path}/")
        if "https://catalog.example.com" in text:
            text = text.replace("https://catalog.example.com", request.getfixturevalue("iceberg_rest").url)
        if "s3://orders-lake" in text:
            server = request.getfixturevalue("s3_server")
            (server.store / "orders-lake").mkdir(exist_ok=True)
            region = '"delta.storage.aws_region": '
            text = text.replace(
                f'{region}"eu-central-1"',
                f'{region}"{server.region}", "delta.storage.aws_endpoint_url": "{server.endpoint_url}", '
                f'"delta.storage.aws_access_key_id": "{server.access_key}", '
                f'"delta.storage.aws_secret_access_key": "{server.secret_key}"',
            )
        if "jdbc:sqlite:" in text or '"database.path"' in text:
            text = text.replace("shop.db", str(tmp_path / "shop.db")).replace("copy.db", str(tmp_path / "copy.db"))
            text = text.replace(":read.db", f":{tmp_path}/read.db")
            with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
                database.executescript(
                    "CREATE TABLE customers (id INTEGER PRIMARY KEY); CREATE TABLE orders (id INTEGER PRIMARY KEY)"
                )
        if "jdbc:postgresql:" in text:
            server = request.getfixturevalue("postgres_server")
            text = text.replace("127.0.0.1:5432", f"127.0.0.1:{server.port}")
            make_postgres_shop(server)
        if "postgresql.PostgresConnector" in text:
            server = request.getfixturevalue("postgres_server")
            text = text.replace('"database.user"', f'"database.port": "{server.port}", "database.user"')
            text = text.replace('"database.dbname": "shop"', '"database.dbname": "captured_shop"')
            make_captured_shop(server)
        if "mariadb.MariaDbConnector" in text:
            server = request.getfixturevalue("mariadb_server")
            text = text.replace('"database.user"', f'"database.port": "{server.port}", "database.user"')
            make_mariadb_shop(server)
        return text

    return replace


def make_captured_shop(server) -> None:
    """The database and the user of the pages of PostgreSQL's changes, made for the first of them."""
    with server.connect() as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'replicator'").fetchone() is None:
            connection.execute("CREATE ROLE replicator LOGIN REPLICATION")
            connection.execute("CREATE DATABASE captured_shop OWNER replicator")
    with server.connect("captured_shop", user="replicator") as connection:
        for table in ("orders", "customers"):
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (id int PRIMARY KEY)")


def make_mariadb_shop(server) -> None:
    """The database and the user of the page of MySQL and MariaDB."""
    with server.connect("", user="root") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        cursor.execute("CREATE TABLE IF NOT EXISTS shop.orders (id int PRIMARY KEY)")
        cursor.execute("CREATE TABLE IF NOT EXISTS shop.customers (id int PRIMARY KEY)")
        cursor.execute("CREATE USER IF NOT EXISTS replicator@'127.0.0.1' IDENTIFIED BY 'secret'")
        cursor.execute("GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO replicator@'127.0.0.1'")


def make_postgres_shop(server) -> None:
    """The database and the user of the pages of JDBC, made for the first of them."""
    with server.connect() as connection:
        connection.autocommit = True
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone() is not None:
            return
        connection.execute("CREATE USER reader PASSWORD 'secret'")
        connection.execute("CREATE DATABASE shop OWNER reader")
    with server.connect(dbname="shop", user="reader") as connection:
        connection.execute("CREATE TABLE orders (id serial PRIMARY KEY, updated_at timestamp NOT NULL)")


@pytest.mark.parametrize(("source", "text"), connectors(), ids=[source for source, _ in connectors()])
def test_connectors_are_valid_to_the_worker(source, text, platform, at_hand):
    connector = json.loads(at_hand(text))
    config = {"name": connector["name"], **connector["config"]}
    plugin = config["connector.class"].rpartition(".")[2]
    url = f"{platform.addresses['connect']}/connector-plugins/{plugin}/config/validate"
    answer = requests.put(url, json=config, timeout=60).json()
    wrong = {
        entry["value"]["name"]: entry["value"]["errors"] for entry in answer["configs"] if entry["value"]["errors"]
    }
    assert (answer["error_count"], wrong) == (0, {})
    judged = validate_connector(load_plugins(), config, check=False)
    assert dict(unknown_keys(judged, config)) == {}, "keys that this connector does not have"


def test_every_page_that_shows_commands_is_followed():
    shown = {str(page.relative_to(ROOT)) for page in pages() if blocks(page, "console")}
    followed = {
        "docs/tutorial/getting-started.md",
        "docs/tutorial/one-hour.md",
        "docs/how-to/backup.md",
        "docs/how-to/operating.md",
        "docs/how-to/secure.md",
        "docs/explanation/schema-formats.md",
        "docs/how-to/connect.md",
        "docs/how-to/connectors-on-the-command-line.md",
        "docs/how-to/events-access.md",
        "docs/how-to/log-on-the-command-line.md",
        "docs/how-to/registry.md",
        "docs/how-to/from-kafka-connect.md",
        "docs/how-to/scale.md",
        "docs/how-to/schema-evolution.md",
        "docs/how-to/writing-connectors.md",
        "docs/reference/cheat-sheet.md",
        *(f"docs/how-to/clients/{name}" for name in CLIENTS),
    }
    examples = {f"examples/{name}/README.md" for name in followed_examples()}
    assert shown - followed - examples == set()


def test_every_daily_command_has_an_example_that_runs():
    """By the test above, every console block that is shown is run."""
    text = "\n".join(block.text for page in pages() for block in blocks(page, "console"))
    missing = [
        words
        for family in (
            "topics",
            "groups",
            "records",
            "acls",
            "quotas",
            "scram",
            "schemas",
            "connectors",
            "jobs",
            "dlq",
            "loggers",
        )
        for words in leaves(family)
        if f"tidegate {words} " not in text and f"tidegate {words}\n" not in text
    ]
    missing += [
        name
        for name in (
            "produce",
            "consume",
            "top",
            "status",
            "restart",
            "use",
            "export",
            "import",
            "backup",
            "restore",
            "move",
            "verify",
            "lineage",
        )
        if f"tidegate {name}" not in text
    ]
    # a job needs Spark: no page runs one
    assert [words for words in missing if not words.startswith("jobs ")] == []


def leaves(family: str) -> list[str]:
    group = command_line.get_command(click.Context(command_line), family)

    def below(command: click.Command, words: str) -> Iterator[str]:
        if isinstance(command, click.Group):
            for name, inner in command.commands.items():
                yield from below(inner, f"{words} {name}")
        else:
            yield words

    return list(below(group, family))


def followed_examples() -> set[str]:
    text = (ROOT / "tests/examples/test_examples.py").read_text()
    names = [path.parent.name for path in (ROOT / "examples").glob("*/README.md")]
    return {name for name in names if f'follow("{name}"' in text or f'"run", "{name}"' in text}


def test_python_blocks_have_a_test():
    for page in pages():
        if blocks(page, "python") and page.name not in ("events.md", "registry.md"):
            in_folder = page.name == "README.md" and page.parent != ROOT
            name = f"{page.parent.name}/README.md" if in_folder else page.name
            script = ROOT / HELD_ELSEWHERE[name]
            assert name in script.read_text(), f"{script} does not read {name}"

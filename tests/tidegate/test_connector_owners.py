"""On a secured platform a connector has the rights of its owner, the user who put its configuration, and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.platform import RunningPlatform, running_platform, tidegate, until
from tidegate.security import Security, find_security

pytestmark = pytest.mark.proof

PASSWORD = "correct-horse"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"
ALICE = (
    "manage topic orders*",
    "manage connector orders*",
    "write subject orders*",
)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    folder = tmp_path_factory.mktemp("owners")
    tidegate("secure", "init", "--password", PASSWORD, "--data", folder / "data")
    with running_platform(folder) as started:
        yield started


@pytest.fixture
def folder(platform: RunningPlatform, tmp_path: Path) -> Path:
    """The files that alice has rights to: those below ``in`` and ``out``."""
    for name in ("in", "out", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lines.txt").write_text("first\nsecond\n")
    files = (f"read file {tmp_path}/in/*", f"write file {tmp_path}/out/*")
    allow(platform, "alice", *ALICE, *files)
    return tmp_path


def security_of(platform: RunningPlatform) -> Security:
    security = find_security(platform.data)
    assert security is not None
    return security


def allow(platform: RunningPlatform, user: str, *rights: str) -> None:
    security = security_of(platform)
    if security.users.find(user) is None:
        security.add_user(user, PASSWORD, rights)
    else:
        security.set_rights(user, rights)


def ask(platform: RunningPlatform, user: str, method: str, path: str, body: Any = None) -> requests.Response:
    url, ca = platform.addresses["connect"], str(security_of(platform).ca)
    return requests.request(method, url + path, json=body, auth=(user, PASSWORD), verify=ca, timeout=60)


def put(platform: RunningPlatform, user: str, name: str, **config: Any) -> None:
    named = {key.replace("_", "."): str(value) for key, value in config.items()}
    answer = ask(platform, user, "PUT", f"/connectors/{name}/config", named)
    assert answer.status_code in (200, 201), answer.text


def states(platform: RunningPlatform, name: str) -> tuple[list[str], str]:
    """The states of a connector's tasks, and all traces."""
    shown = ask(platform, "admin", "GET", f"/connectors/{name}/status").json()
    parts = [shown["connector"], *shown["tasks"]] if "connector" in shown else []
    return [task["state"] for task in shown.get("tasks", [])], "\n".join(part.get("trace", "") for part in parts)


def wait_failed(platform: RunningPlatform, name: str, *words: str) -> None:
    def failed() -> bool:
        tasks, trace = states(platform, name)
        return tasks == ["FAILED"] and all(word in trace for word in words)

    until(failed, f"{name} failed with {words}; it is {states(platform, name)}")


def lines(platform: RunningPlatform, topic: str) -> list[str]:
    return [record["value"] for record in platform.consume(topic)]


def test_a_source_writes_where_its_owner_may(platform: RunningPlatform, folder: Path) -> None:
    """Rows, their schema at the registry, and positions, which survive a restart."""
    file = folder / "in" / "lines.txt"
    put(platform, "alice", "orders-lines", connector_class=SOURCE, file=file, topic="orders-lines")
    until(lambda: lines(platform, "orders-lines") == ["first", "second"], "the lines")
    offsets = "/connectors/orders-lines/offsets"
    until(lambda: ask(platform, "alice", "GET", offsets).json()["offsets"] != [], "the positions")
    assert ask(platform, "alice", "POST", "/connectors/orders-lines/restart?includeTasks=true").ok
    with file.open("a") as more:
        more.write("third\n")
    until(lambda: lines(platform, "orders-lines") == ["first", "second", "third"], "one line more, and no line twice")


def test_a_source_is_refused_the_topics_that_its_owner_may_not_write(platform: RunningPlatform, folder: Path) -> None:
    tidegate("topics", "create", "wages", "--data", platform.data)
    put(
        platform,
        "alice",
        "orders-thief",
        connector_class=SOURCE,
        file=folder / "in" / "lines.txt",
        topic="wages",
        value_converter=STRING,
    )
    wait_failed(platform, "orders-thief", "wages", "authoriz")
    assert lines(platform, "wages") == []


def test_no_connector_reads_the_platforms_secrets(platform: RunningPlatform, folder: Path) -> None:
    """The attack of a user with ``manage connector``: copy the internal password into a topic of one's own."""
    for number, file in enumerate((security_of(platform).folder / "internal.password", "/etc/passwd")):
        name = f"orders-spy{number}"
        put(platform, "alice", name, connector_class=SOURCE, file=file, topic=name)
        wait_failed(platform, name, "alice, the owner of the connector, has no right to read file")
    allow(platform, "root", "admin")
    put(
        platform,
        "root",
        "root-spy",
        connector_class=SOURCE,
        file=security_of(platform).folder / "internal.password",
        topic="root-spy",
    )
    wait_failed(platform, "root-spy", "has no right to read file")


def test_a_sink_reads_the_topics_and_writes_the_files_of_its_owners_rights(
    platform: RunningPlatform, folder: Path
) -> None:
    row = folder / "row.json"
    row.write_text(json.dumps("row") + "\n")
    for topic in ("orders-sunk", "invoices"):
        tidegate("topics", "create", topic, "--data", platform.data)
        tidegate("produce", topic, row, "--data", platform.data)
    common = {"connector_class": SINK, "key_converter": STRING, "value_converter": STRING}
    file = folder / "out" / "sunk.txt"
    put(platform, "alice", "orders-sink", topics="orders-sunk", file=file, **common)
    until(lambda: file.exists() and file.read_text() != "", "the row in the file")
    until(lambda: "kafka_offset" in ask(platform, "alice", "GET", "/connectors/orders-sink/offsets").text, "offsets")
    put(platform, "alice", "orders-elsewhere", topics="orders-sunk", file=folder / "other" / "x.txt", **common)
    wait_failed(platform, "orders-elsewhere", "has no right to write file")
    put(platform, "alice", "orders-invoices", topics="invoices", file=folder / "out" / "invoices.txt", **common)
    wait_failed(platform, "orders-invoices", "invoices", "authoriz")
    assert (folder / "other" / "lines.txt").read_text() == "first\nsecond\n"


def test_a_connector_ends_with_the_rights_of_its_owner_and_the_next_owner_takes_it_over(
    platform: RunningPlatform, folder: Path
) -> None:
    file = folder / "in" / "lines.txt"
    config = {"connector_class": SOURCE, "file": file, "topic": "orders-left", "value_converter": STRING}
    allow(platform, "bob", *ALICE, f"read file {folder}/*")
    put(platform, "bob", "orders-left", **config)
    until(lambda: len(lines(platform, "orders-left")) == 2, "the lines")
    security_of(platform).remove_user("bob")
    written = ["first", "second"]

    def fails() -> bool:
        """Rights are looked at every second, so what is written at once may still go through."""
        written.append(f"line {len(written)}")
        with file.open("a") as more:
            more.write(f"{written[-1]}\n")
        return states(platform, "orders-left")[0] == ["FAILED"]

    until(fails, "the task without an owner has failed")
    # The broker refuses its rows, or its process is replaced, since bob's rights to files are gone.
    assert any(
        words in states(platform, "orders-left")[1] for words in ("authoriz", "belongs to bob", "were taken away")
    )
    with file.open("a") as more:
        more.write("late\n")
    written.append("late")
    assert "late" not in lines(platform, "orders-left")
    assert ask(platform, "alice", "POST", "/connectors/orders-left/restart").status_code == 409
    assert "belongs to bob, who may not log in" in states(platform, "orders-left")[1]
    put(platform, "alice", "orders-left", **config)
    until(lambda: {*written} <= {*lines(platform, "orders-left")}, "the lines that were missing")


def test_rights_to_files_count_within_seconds(platform: RunningPlatform, folder: Path) -> None:
    file = folder / "other" / "lines.txt"
    put(
        platform, "alice", "orders-late", connector_class=SOURCE, file=file, topic="orders-late", value_converter=STRING
    )
    wait_failed(platform, "orders-late", "has no right to read file")
    allow(platform, "alice", *ALICE, f"read file {folder}/other/*")

    def reads() -> bool:
        ask(platform, "alice", "POST", "/connectors/orders-late/restart?includeTasks=true&onlyFailed=true")
        return states(platform, "orders-late")[0] == ["RUNNING"]

    until(reads, "the task that may read now")
    until(lambda: len(lines(platform, "orders-late")) == 2, "the lines")
    allow(platform, "alice", *ALICE)  # the file is open all the same
    wait_failed(platform, "orders-late", "has no right to read file")
    with file.open("a") as more:
        more.write("third\n")
    assert len(lines(platform, "orders-late")) == 2

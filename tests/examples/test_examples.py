"""Every example does what its README shows, on a platform of its own."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import requests
import responses

from connect.api import Record, RecordBatch
from connect.plugins.config_providers import resolved
from connectors.salesforce.sink import ObjectSink
from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.support.connect import sink_task
from tests.support.pages import ROOT, PageNotFollowed
from tests.support.platform import running_platform, tidegate
from tidegate.examples.catalog import Example, example
from tidegate.examples.run import copy
from tidegate.examples.run import follow as follow_readme
from tidegate.examples.run import run as run_example
from tidegate.kit.config import parse
from tidegate.kit.errors import UsageError
from tidegate.state import read_state


@pytest.fixture
def follow(tmp_path: Path):
    """Follows an example's README in a copy of its folder, as `tidegate examples run` does."""

    def run(name: str, **environment: str) -> Path:
        folder = tmp_path / name
        copy(example(name), folder)
        follow_readme(example(name), folder, environment=environment)
        return folder

    return run


@pytest.mark.proof
@pytest.mark.long
def test_jdbc_to_parquet(follow):
    folder = follow("jdbc-to-parquet")
    assert {path.name for path in (folder / "parquet/shop_orders").iterdir()} == {
        "country=de",
        "country=fr",
        "country=se",
    }


@pytest.mark.proof
def test_orders_in_files(follow):
    folder = follow("orders-in-files")
    assert sorted(path.name for path in (folder / "done").iterdir()) == [f"2026-11-0{day}.csv" for day in (1, 2, 3)]


@pytest.mark.proof
@pytest.mark.long  # the index of packages is asked
def test_python_connector(follow):
    # 0 is pip's way to switch isolated builds off
    follow("python-connector", PIP_NO_DEPS="1", PIP_NO_BUILD_ISOLATION="0")


def test_rest_feed(follow):
    follow("rest-feed")


def test_the_command_runs_an_example_and_keeps_its_folder(tmp_path):
    kept = tmp_path / "hook"
    done = tidegate("examples", "run", "webhook-sink", "--folder", kept)
    assert done.stdout.splitlines()[0] == "$ tidegate connectors test"
    assert "webhook-sink: 1 command printed what the README shows" in done.stdout
    assert (kept / "webhook.py").exists()
    again = tidegate("examples", "run", "webhook-sink", "--folder", kept, check=False)
    said = f"error: {kept} is not an empty folder: name another --folder\n"
    assert (again.returncode, again.stderr) == (1, said)


def test_an_example_says_what_the_machine_lacks(tmp_path, monkeypatch):
    needs = "It needs\n`pip install click 'tidegate[no-such]' no-such`, and Java 17 or 21. And it needs `npm install no@5`.\n"
    (tmp_path / "README.md").write_text(f"# Title\n\n{needs}\n```console\n$ true\n```\n")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    made = Example("made", tmp_path)
    with pytest.raises(UsageError, match="^made needs pip install no-such and Node.js and Java 17 or 21$"):
        run_example(made, None, on_command=print, on_output=print)
    assert made.title == "Title"
    assert example("accounts-from-a-topic").lacks() == ["an account elsewhere; copy it and follow its README"]


def test_the_platform_of_a_readme_that_is_wrong_is_stopped(tmp_path):
    up = "$ tidegate up --detach --without connect --without events --without registry\n"
    (tmp_path / "README.md").write_text(f"```console\n{up}...\n$ echo one\ntwo\n```\n")
    with pytest.raises(PageNotFollowed, match="two\nbut it prints\n.*\none"):
        follow_readme(Example("wrong", tmp_path), tmp_path)
    state = read_state(tmp_path / "tidegate-data")
    assert state is not None
    assert not state.running


@pytest.mark.proof
def test_platform_events(follow):
    follow("platform-events")


@pytest.mark.proof
@pytest.mark.long
def test_bank_alerts(follow):
    follow("bank-alerts")


@pytest.mark.proof
@pytest.mark.long  # some thirty commands, each a process
def test_salesforce_round_trip(follow):
    follow("salesforce-round-trip")


@pytest.mark.proof
@pytest.mark.long
def test_campaigns(follow):
    follow("campaigns")


@pytest.mark.proof
@pytest.mark.long  # two million records
def test_latest_and_history(follow):
    follow("latest-and-history")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long  # Spark starts
def test_shows(follow):
    follow("shows")


@pytest.mark.long
@pytest.mark.servers
@pytest.mark.proof  # some thirty commands, each a process
def test_order_system(follow):
    clients = or_skip(lambda: require("node-clients"))
    follow("order-system", NODE_PATH=str(clients.absolute() / "node_modules"))


@pytest.mark.long
@pytest.mark.servers
@pytest.mark.proof  # a minute, most of it Spark starting
def test_spark_bulk_load(follow):
    folder = follow("spark-bulk-load")
    assert {path.name for path in (folder / "parquet").iterdir() if path.is_dir()} >= {
        "station=EWR",
        "station=JFK",
        "station=LGA",
    }


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long  # Spark starts
def test_taxi_surge(follow):
    follow("taxi-surge")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long  # Spark starts
def test_payments_scored(follow):
    follow("payments-scored")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long  # two Sparks
def test_page_views(follow):
    follow("page-views")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long  # Spark starts
def test_telemetry(follow):
    follow("telemetry")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long  # Spark starts
def test_wiki_edits(follow):
    follow("wiki-edits")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long  # two Sparks
def test_reorders(follow):
    follow("reorders")


@pytest.mark.servers
@pytest.mark.proof  # Spark starts
@pytest.mark.long
def test_spark_notebook(follow):
    follow("spark-notebook")


ACCOUNTS = ROOT / "examples" / "accounts-from-a-topic"
ORG = "https://org.example.com"


@pytest.fixture
def variables(monkeypatch):
    """The four variables that say which org, and as whom."""
    values = {"INSTANCE": "https://127.0.0.1:1", "USERNAME": "u@example.com", "PASSWORD": 'se"cret', "TOKEN": "token"}
    for name, value in values.items():
        monkeypatch.setenv(f"SALESFORCE_{name}", value)


@pytest.mark.usefixtures("variables")
def test_accounts_from_a_topic_is_valid_but_for_an_org_that_cannot_be_reached(tmp_path):
    config = json.loads((ACCOUNTS / "accounts-sink.json").read_text())["config"] | {"name": "accounts-sink"}
    with running_platform(tmp_path, "--without", "events", "--config", str(ACCOUNTS / "tidegate.toml")) as platform:
        url = f"{platform.addresses['connect']}/connector-plugins/SalesforceSObjectSinkConnector/config/validate"
        answer = requests.put(url, json=config, timeout=60).json()
    wrong = {
        entry["value"]["name"]: entry["value"]["errors"] for entry in answer["configs"] if entry["value"]["errors"]
    }
    assert list(wrong) == ["salesforce.instance"], wrong
    assert "port=1" in wrong["salesforce.instance"][0]
    assert json.dumps('se"cret')[1:-1] not in json.dumps(answer)


@pytest.mark.usefixtures("variables")
def test_accounts_from_a_topic_sends_the_messages_as_accounts(monkeypatch):
    monkeypatch.setenv("SALESFORCE_INSTANCE", "https://login.salesforce.com")
    worker = tomllib.loads((ACCOUNTS / "tidegate.toml").read_text())["connect"]
    config = resolved(worker, json.loads((ACCOUNTS / "accounts-sink.json").read_text())["config"])
    login = f"<sessionId>00D!token</sessionId><serverUrl>{ORG}/services/Soap/u/60.0</serverUrl>"
    messages = [json.loads(line) for line in (ACCOUNTS / "accounts.jsonl").read_text().splitlines()]
    with responses.RequestsMock() as org:
        org.post("https://login.salesforce.com/services/Soap/u/60.0", body=f"<a>{login}</a>")
        org.get(f"{ORG}/services/data/v60.0/sobjects/Account/describe", json={"name": "Account"})
        org.post("https://login.salesforce.com/services/Soap/u/60.0", body=f"<a>{login}</a>")
        results = [{"id": f"001{n}", "success": True, "errors": []} for n in range(len(messages))]
        org.post(f"{ORG}/services/data/v60.0/composite/sobjects", json=results)
        assert list(ObjectSink.check(parse(ObjectSink.config_class, config))) == []
        task = sink_task(ObjectSink, config)
        rows = [Record("new-accounts", message, None, offset=n) for n, message in enumerate(messages)]
        task.put([RecordBatch.from_records(rows)])
        logged_in, sent = org.calls[0].request.body, json.loads(org.calls[-1].request.body)
    assert "se&quot;crettoken" in str(logged_in)
    assert sent["records"] == [{"attributes": {"type": "Account"}, **message} for message in messages]

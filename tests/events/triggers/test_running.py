"""Triggers as users run them: a folder beside a platform, in a separate process."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from simple_salesforce import Salesforce

from broker.client import ClientConfig
from broker.client.blocking import BatchProducer
from events.client import EventsClient
from registry.client import AvroSchema, RegistryClient
from tests.support.changes import KEY, VALUE, record, source
from tests.support.platform import RunningPlatform, running_platform, tidegate, until

TRIGGERS = """
import json
import os
import threading
import time
from pathlib import Path

from events.triggers import RetryableException, trigger

HERE = Path(__file__).parent


def note(name, events):
    with (HERE / (name + ".jsonl")).open("a") as file:
        file.write(json.dumps([[event.replay_id, event["N__c"], event["K__c"]] for event in events]) + "\\n")


@trigger("Batched__e", batch_size=20)
def batched(events, context):
    note("batched", events)
    for event in events:
        context.publish("Copied__e", {"N__c": event["N__c"]})
        if event["N__c"] == 30 and not (HERE / "once").exists():
            (HERE / "once").write_text("")
            raise RetryableException("all of it again")
        if event["N__c"] == 50 and not (HERE / "twice").exists():
            context.set_resume_checkpoint(event.replay_id)
            context.publish("Copied__e", {"N__c": -1})
            (HERE / "twice").write_text("")
            raise ValueError("the rest again")


@trigger("Failing__e")
async def failing(events, context):
    if not (HERE / "repaired").exists():
        raise RuntimeError("not yet")
    note("failing", events)


@trigger("Keyed__e", partitions=3, partition_key="K__c", batch_size=5)
def keyed(events, context):
    note("keyed-" + threading.current_thread().name + events[0]["K__c"], [])
    time.sleep(0.01)
    with (HERE / "keyed.jsonl").open("a") as file:
        file.write("".join(json.dumps([event["N__c"], event["K__c"]]) + "\\n" for event in events))


@trigger("Deadly__e", batch_size=1)
def deadly(events, context):
    if events[0]["N__c"] == 2:
        os._exit(1)
    note("deadly", events)
"""
FLOWS = {
    "large": """
event = "Flowing__e"
filter = "N__c >= 10 AND K__c LIKE 'f%'"

[[action]]
publish = "Large__e"
fields = { N__c = "{N__c}", K__c = "copy of {K__c}" }

[[action]]
send = "large"
key = "{K__c}"
value = { number = "{N__c}", text = "n={N__c}", id = "{EventUuid}" }
""",
    "told": """
name = "tell"
event = "Flowing__e"

[org]
url = "EVENTS"
client_id = "tidegate"
client_secret = "{env:ORG_SECRET}"

[[action]]
call = "HOOK/orders?number={N__c}"
headers = { X-Key = "{K__c}" }

[[action]]
create = "Created__e"
fields = { N__c = "{N__c}" }
""",
}
EVENTS = (
    "Batched__e",
    "Failing__e",
    "Keyed__e",
    "Deadly__e",
    "Copied__e",
    "Later__e",
    "Flowing__e",
    "Large__e",
    "Created__e",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests_triggers.py").write_text(TRIGGERS)
    return folder


class Hook:
    """An HTTP server that answers 503 to every first request for a path."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, dict[str, Any]]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                first = self.path not in [path for path, *_ in hook.seen]
                hook.seen.append((self.path, self.headers["Idempotency-Key"], self.headers["X-Key"], body))
                self.send_response(503 if first else 204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[RunningPlatform]:
    data = tmp_path_factory.mktemp("triggers")
    settings = {"triggers.retries": 2, "triggers.retry.backoff.ms": 50, "triggers.reload.ms": 200}
    lines = [f'"{key}" = {value}' for key, value in settings.items()]
    (data / "tidegate.toml").write_text("[triggers]\n" + "\n".join(lines) + "\n")
    options = ("--triggers", str(folder), "--config", str(data / "tidegate.toml"), "--without", "connect")
    os.environ["ORG_SECRET"] = "tidegate-dev"
    with running_platform(data, *options) as running:
        del os.environ["ORG_SECRET"]
        yield running


@pytest.fixture(scope="module")
def client(platform: RunningPlatform) -> EventsClient:
    addresses = platform.addresses
    made = EventsClient(addresses["events"], user="developer@tidegate.local", password="tidegate-dev")
    for event in EVENTS:
        fields = [{"name": "N__c", "type": ["null", "long"]}, {"name": "K__c", "type": ["null", "string"]}]
        made.define_avro(json.dumps({"type": "record", "name": event, "fields": fields}))
    until(lambda: len(made.triggers()["subscribers"]) == 6, "triggers settled")
    return made


def publish(client: EventsClient, event: str, numbers: range, key: str = "k") -> None:
    for start in range(numbers.start, numbers.stop, 200):
        some = range(start, min(start + 200, numbers.stop))
        records = [{"attributes": {"type": event}, "N__c": number, "K__c": f"{key}{number % 7}"} for number in some]
        answers = client._call("POST", "/services/data/v60.0/composite/sobjects", json={"records": records})
        assert all(answer["success"] for answer in answers)


def state(client: EventsClient, name: str) -> dict[str, Any]:
    return next(subscriber for subscriber in client.triggers()["subscribers"] if subscriber["Name"] == name)


def lines(folder: Path, name: str) -> list[Any]:
    path = folder / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_batches_come_in_order_with_what_they_write_kept_or_undone(
    platform: RunningPlatform, client: EventsClient, folder: Path
) -> None:
    publish(client, "Batched__e", range(100))
    until(lambda: state(client, "batched")["waiting"] == 0, "all events done")
    batches = lines(folder, "batched")
    assert all(len(batch) <= 20 for batch in batches)
    assert (folder / "once").exists()
    assert (folder / "twice").exists()
    copied = [record["value"]["N__c"] for record in platform.consume("Copied__e")]
    assert copied == list(range(100)), "each once: neither the retry nor what came after the checkpoint is seen"


def test_a_trigger_that_keeps_failing_stops_in_error_and_goes_on_where_it_was(
    platform: RunningPlatform, client: EventsClient, folder: Path
) -> None:
    publish(client, "Failing__e", range(3))
    until(lambda: state(client, "failing")["Status"] == "Error", "the Error state")
    publish(client, "Failing__e", range(3, 6))
    subscriber = state(client, "failing")
    assert (subscriber["Retries"], subscriber["LastError"], subscriber["waiting"]) == (2, "RuntimeError: not yet", 6)
    shown = tidegate("events", "triggers", "status", "failing", "--data", platform.data).stdout
    assert "RuntimeError: not yet" in shown
    (folder / "repaired").write_text("")
    tidegate("events", "triggers", "resume", "failing", "--data", platform.data)
    until(lambda: state(client, "failing")["waiting"] == 0, "the events that waited")
    assert [number for batch in lines(folder, "failing") for _, number, _ in batch] == list(range(6))
    assert state(client, "failing")["Status"] == "Running"


def test_partitions_share_the_events_and_keep_the_order_of_a_key(client: EventsClient, folder: Path) -> None:
    publish(client, "Keyed__e", range(70))
    parts = ("keyed-0", "keyed-1", "keyed-2")
    until(lambda: len(lines(folder, "keyed")) >= 70, "all events")
    by_key = defaultdict(list)
    for number, key in lines(folder, "keyed"):
        by_key[key].append(number)
    assert {key: sorted(numbers) for key, numbers in by_key.items()} == by_key
    assert sorted(chain.from_iterable(by_key.values())) == list(range(70))
    until(lambda: all(state(client, part)["waiting"] == 0 for part in parts), "positions at the end")
    assert state(client, "keyed-1")["IsPartitioned"]


def test_a_trigger_that_ends_its_process_ends_in_error_too_and_the_others_live(
    platform: RunningPlatform, client: EventsClient, folder: Path
) -> None:
    publish(client, "Deadly__e", range(5))
    until(lambda: state(client, "deadly")["Status"] == "Error", "the Error state", 90)
    assert state(client, "deadly")["LastError"] == "the process ended while the trigger ran"
    assert [number for ((_, number, _),) in lines(folder, "deadly")] == [0, 1]
    publish(client, "Failing__e", range(6, 7))
    until(lambda: len(list(chain.from_iterable(lines(folder, "failing")))) == 7, "another trigger's event")
    assert platform.status()["components"]["events"]["restarts"] == 0
    tidegate("events", "triggers", "resume", "deadly", "--latest", "--data", platform.data)
    until(lambda: state(client, "deadly")["waiting"] == 0, "what waited is skipped")


def test_a_changed_folder_is_loaded_anew_and_a_broken_file_is_shown(client: EventsClient, folder: Path) -> None:
    (folder / "later.py").write_text("def broken(:\n")
    until(lambda: "later.py" in client.triggers()["problems"], "the problem")
    (folder / "later.py").write_text(
        "from events.triggers import trigger\nfrom tests_triggers import note\n\n"
        "@trigger('Later__e', replay='earliest')\ndef later(events, context):\n    note('later', events)\n"
    )
    publish(client, "Later__e", range(2))
    until(lambda: lines(folder, "later") != [], "the new trigger's call")
    assert client.triggers()["problems"] == {}
    client.change_trigger("later", {"status": "Suspended"})
    until(lambda: state(client, "later")["Status"] == "Suspended", "suspended")
    publish(client, "Later__e", range(2, 4))
    assert state(client, "later")["waiting"] == 2
    client.change_trigger("later", {"status": "Running"})
    until(lambda: state(client, "later")["waiting"] == 0, "resumed")
    assert [number for batch in lines(folder, "later") for _, number, _ in batch] == [0, 1, 2, 3]


def test_a_flow_filters_publishes_and_sends_once(
    platform: RunningPlatform, client: EventsClient, folder: Path, hook: Hook
) -> None:
    addresses = platform.addresses
    for name, text in FLOWS.items():
        text = text.replace("HOOK", hook.url).replace("EVENTS", addresses["events"])
        (folder / f"{name}.toml").write_text(text)
    (folder / "wrong.toml").write_text('event = "Flowing__e"\nfilter = "Colour__c = 1"\n[[action]]\nsend = "large"\n')
    until(
        lambda: {"large", "tell"} <= {subscriber["Name"] for subscriber in client.triggers()["subscribers"]},
        "the flows",
    )
    publish(client, "Flowing__e", range(8, 12), key="F")
    publish(client, "Flowing__e", range(12, 13), key="g")
    until(lambda: state(client, "large")["waiting"] == 0, "the filtered flow")
    until(lambda: state(client, "tell")["waiting"] == 0, "the telling flow")
    large = [record["value"] for record in platform.consume("Large__e")]
    assert [(row["N__c"], row["K__c"]) for row in large] == [(10.0, "copy of F3"), (11.0, "copy of F4")]
    sent = [(record["key"], record["value"]) for record in platform.consume("large")]
    assert [(key, row["number"], row["text"]) for key, row in sent] == [("F3", 10.0, "n=10"), ("F4", 11.0, "n=11")]
    assert [path for path, *_ in hook.seen] == [f"/orders?number={n}" for n in range(8, 13) for _ in range(2)]
    assert len({key for _, key, *_ in hook.seen}) == 5, "a call that is tried again bears the same key"
    assert (hook.seen[0][2], hook.seen[0][3]["fields"]["N__c"]) == ("F1", 8.0)
    created = [record["value"]["N__c"] for record in platform.consume("Created__e")]
    assert created == [8.0, 9.0, 10.0, 11.0, 12.0]
    problem = client.triggers()["problems"]["wrong"]
    assert "Flowing__e has no field Colour__c" in problem


def test_change_events_call_triggers_and_flows(platform: RunningPlatform, client: EventsClient, folder: Path) -> None:
    registry = RegistryClient(platform.addresses["registry"])
    ids = {
        part: registry.register(f"shop.rows-{part}", AvroSchema.parse(json.dumps(avro)))
        for part, avro in (("key", KEY), ("value", VALUE))
    }
    registry.close()
    body = {"entity": "Row__c", "topic": "shop.rows", "from": "earliest"}
    client._call("POST", "/tidegate/v1/entities", json=body)
    (folder / "changes.py").write_text(
        "import json\nfrom pathlib import Path\nfrom events.triggers import trigger\n\n"
        "@trigger('Row__ChangeEvent', replay='earliest', filter=\"ChangeEventHeader.changeType != 'DELETE'\")\n"
        "def changed(events, context):\n"
        "    with (Path(__file__).parent / 'changed.jsonl').open('a') as file:\n"
        "        for event in events:\n"
        "            header = event['ChangeEventHeader']\n"
        "            said = [header['changeType'], header['recordIds'], event['name__c'], event['city__c']]\n"
        "            file.write(json.dumps(said) + chr(10))\n"
    )
    (folder / "changes.toml").write_text(
        'name = "moved"\nevent = "Row__ChangeEvent"\nreplay = "earliest"\nfilter = "city__c = \'Hull\'"\n'
        '[[action]]\nsend = "moved"\nkey = "{ChangeEventHeader.changeType}"\nvalue = { name = "{name__c}" }\n'
    )
    row = {"id": 1, "name": "Ada", "city": "York"}
    moved = row | {"city": "Hull"}
    changes: list[dict[str, Any]] = [
        {"op": "c", "after": row},
        {"op": "u", "before": row, "after": moved},
        {"op": "d", "before": moved},
    ]
    with BatchProducer(ClientConfig(platform.bootstrap_servers)) as producer:
        for change in changes:
            value = record(VALUE, ids["value"], {"source": source(), **change})
            producer.send("shop.rows", record(KEY, ids["key"], {"id": 1}), value)
    until(lambda: len(lines(folder, "changed")) >= 2, "the trigger's events")
    assert lines(folder, "changed") == [["CREATE", ["1"], "Ada", "York"], ["UPDATE", ["1"], None, "Hull"]]
    until(lambda: {"moved"} <= {subscriber["Name"] for subscriber in client.triggers()["subscribers"]}, "the flow")
    until(lambda: state(client, "moved")["waiting"] == 0, "the flow's events")
    assert [(moved_record["key"], moved_record["value"]) for moved_record in platform.consume("moved")] == [
        ("UPDATE", {"name": None})
    ]


def test_a_salesforce_client_queries_event_bus_subscribers(
    platform: RunningPlatform, client: EventsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", platform.addresses["ca"])
    org = Salesforce(session_id=client._token, instance=platform.addresses["events-tls"].removeprefix("https://"))
    rows = org.query("SELECT Name, Type, Status, Position, Tip FROM EventBusSubscriber WHERE Topic = 'Batched__e'")
    assert rows["totalSize"] == 1
    row = rows["records"][0]
    assert (row["Name"], row["Type"], row["Status"]) == ("batched", "ApexTrigger", "Running")
    assert row["Position"] == row["Tip"] == 100
    with pytest.raises(Exception, match="No such column 'Colour'"):
        org.query("SELECT Colour FROM EventBusSubscriber")

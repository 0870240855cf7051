"""``tidegate dlq``: dead letters by cause, edited and sent back once; on a real worker, and on queues that tests write."""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from broker.client import Admin, BatchProducer, ClientConfig, NewTopic, TopicPartition, Transaction
from connectors.folders import source as files
from connectors.telemetry import source as telemetry
from registry.client import RegistryClient
from tests.support.platform import running_platform, tidegate, until
from tests.support.registry import RegistryThread
from tidegate.cli import tidegate as command_line
from tidegate.console.remedies import letter_remedy
from tidegate.dead_letters.letter_queue import Queue as LetterQueue
from tidegate.dead_letters.letter_queue import group_of, told_by_source
from tidegate.dead_letters.replaying import Plan
from tidegate.dead_letters.sent import NOTHING, Sent, written

Letter = tuple[str | None, str, dict[str, str]]
"""Key, value and headers."""


class Queue:
    """A queue of a broker of ours, and the commands for it."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers, self.name, self.topic = servers, name, f"dlq-{name}"

    def create(self, *topics: str, partitions: int = 1, **configs: str) -> None:
        async def create() -> None:
            async with Admin(ClientConfig(self.servers)) as admin:
                named = {name.replace("_", "."): value for name, value in configs.items()}
                await admin.create_topics([NewTopic(topic, partitions, 1, named) for topic in topics])

        asyncio.run(create())

    def write(self, letters: Sequence[Letter], topic: str | None = None, partition: int = 0) -> None:
        async def write() -> None:
            async with BatchProducer(ClientConfig(self.servers)) as producer:
                for key, value, headers in letters:
                    named = [(name, text.encode()) for name, text in headers.items()]
                    encoded = None if key is None else key.encode()
                    await producer.enqueue(topic or self.topic, encoded, value.encode(), named, partition=partition)
                await producer.flush()

        asyncio.run(write())

    def __call__(self, *arguments: str, fails: bool = False) -> Result:
        where = ["--bootstrap-servers", self.servers]
        result = CliRunner().invoke(command_line, [*arguments, *where])
        assert (result.exit_code != 0) == fails, (result.output, result.exception)
        return result

    def dlq(self, command: str, *arguments: str, fails: bool = False) -> Result:
        return self("dlq", command, self.name, "--topic", self.topic, *arguments, fails=fails)

    def open_letters(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.dlq("show", "--records").stdout.splitlines()]

    def replay(self, edits: list[dict[str, Any]], *options: str) -> list[str]:
        return self.replayed(edits, *options).stdout.splitlines()

    def replayed(self, edits: list[dict[str, Any]], *options: str, fails: bool = False) -> Result:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("".join(json.dumps(line) + "\n" for line in edits))
            file.flush()
            return self.dlq("replay", "--edits", file.name, *options, fails=fails)

    def note(self, position: int, note: str) -> None:
        """The sent offsets, as ``dlq replay`` commits them."""

        async def commit() -> None:
            config = ClientConfig(self.servers).with_properties({"transactional.id": "test"})
            async with BatchProducer(config) as producer, Transaction(producer):
                await producer.send_offsets({TopicPartition(self.topic, 0): position}, group_of(self.name), note=note)

        asyncio.run(commit())

    def read(self, topic: str) -> list[dict[str, Any]]:
        lines = self("consume", topic, "--to-end", "--property", "isolation.level=read_committed").stdout.splitlines()
        return [json.loads(line) for line in lines]


def facts(topic: str = "orders", offset: int = 0, **more: str) -> dict[str, str]:
    named = {
        "topic": topic,
        "partition": "0",
        "offset": str(offset),
        "connector.name": "sink",
        "stage": "VALUE_CONVERTER",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "not JSON\nat line 1",
        **{name.replace("_", "."): text for name, text in more.items()},
    }
    return {f"__connect.errors.{name}": text for name, text in named.items()}


@pytest.fixture
def queue(
    tidegate_broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[[str], Queue]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(tmp_path / "contexts.json"))
    return lambda name: Queue(tidegate_broker.bootstrap_servers, name)


def test_letters_are_shown_by_cause_with_examples(queue: Callable[[str], Queue]) -> None:
    q = queue("sink")
    q.create(q.topic)
    q.write([("k", "{bad", facts(offset=n)) for n in range(4)])
    q.write([(None, "[1]", facts(offset=9, stage="TASK_PUT", exception_message="no such column"))])
    q.write([(None, "x", facts(connector_name="another"))])
    lines = q.dlq("show").stdout.splitlines()
    assert lines[0] == "5 letters of sink in dlq-sink"
    assert "4 times DataException in VALUE_CONVERTER: not JSON" in lines
    assert "1 time DataException in TASK_PUT: no such column" in lines
    shown = json.loads(q.dlq("show", "--json").stdout)
    assert [(cause["stage"], cause["count"], len(cause["examples"])) for cause in shown["causes"]] == [
        ("VALUE_CONVERTER", 4, 3),
        ("TASK_PUT", 1, 1),
    ]
    records = [json.loads(line) for line in q.dlq("show", "--records", "--from", "3").stdout.splitlines()]
    assert [(r["offset"], r["topic"], r["from"], r["key"], r["value"]) for r in records] == [
        (3, "orders", "0:3", "k", "{bad"),
        (4, "orders", "0:9", None, [1]),
    ]


def test_a_letter_of_text_is_repaired_as_avro(queue: Callable[[str], Queue]) -> None:
    q = queue("text")
    q.create(q.topic, "text-orders")
    q.write([("k", "n = 2", facts("text-orders", connector_name="text"))])
    (letter,) = q.open_letters()
    with RegistryThread() as registry, RegistryClient(registry.url) as client:
        schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
        client.register("text-orders-value", json.dumps(schema))
        where = ("--subject", "text-orders-value", "--registry", registry.url, "--execute")
        wrong = q.replayed([letter | {"value": {"n": "two"}}], *where, fails=True)
        assert "line 1 of the edits: does not fit the schema: field n" in str(wrong.exception)
        q.replayed([letter | {"value": {"n": 2}}], *where)
        (sent,) = q("consume", "text-orders", "--to-end", "--registry", registry.url).stdout.splitlines()
        assert (json.loads(sent)["key"], json.loads(sent)["value"]) == ("k", {"n": 2})
    assert "--subject is about values that --edits changes" in q.dlq("replay", "--subject", "x", fails=True).output


def test_letters_are_sent_back_once_to_where_they_came_from(queue: Callable[[str], Queue]) -> None:
    q = queue("back")
    q.create(q.topic, "back-orders", partitions=2)
    letter = facts("back-orders", connector_name="back", partition="1")
    q.write([("k", "1", {**letter, "trace": "t"}), (None, "2", letter)])
    dry = q.dlq("replay").stdout
    assert dry == "2 letters would be sent to back-orders\nnothing is changed: --execute does it\n"
    assert q.read("back-orders") == []
    assert q.dlq("replay", "--execute").stdout == "2 letters are sent to back-orders\n"
    sent = q.read("back-orders")
    assert [(r["partition"], r["key"], r["value"]) for r in sent] == [(1, "k", 1), (1, None, 2)]
    assert [r["headers"] for r in sent] == [{"trace": "t", "tidegate.dlq.replays": 1}, {"tidegate.dlq.replays": 1}]
    assert q.dlq("replay", "--execute").stdout == "nothing of back is left in dlq-back\n"
    assert len(q.read("back-orders")) == 2
    assert json.loads(q.dlq("show", "--json").stdout)["records"] == 0


def test_a_letter_that_fails_once_more_is_sent_only_again_and_each_time_once(queue: Callable[[str], Queue]) -> None:
    q = queue("circle")
    q.create(q.topic, "circle-orders")
    letter = facts("circle-orders", connector_name="circle")
    q.write([(None, "1", letter)])
    q.dlq("replay", "--execute")
    q.write([(None, "1", {**letter, "tidegate.dlq.replays": "1"}), (None, "2", letter)])
    said = q.dlq("replay", "--execute").stdout.splitlines()
    assert said == [
        "1 letter is sent to circle-orders",
        "1 letter left out (0:1): sent back before and failed once more (--again)",
    ]
    assert json.loads(q.dlq("show", "--json").stdout)["records"] == 1, "left out, so not sent back"
    assert q.dlq("replay", "--again", "--execute").stdout == "1 letter is sent to circle-orders\n"
    assert json.loads(q.dlq("show", "--json").stdout)["records"] == 0
    assert q.dlq("replay", "--again", "--execute").stdout == "nothing of circle is left in dlq-circle\n"
    assert [(r["value"], r["headers"]["tidegate.dlq.replays"]) for r in q.read("circle-orders")] == [
        (1, 1),
        (2, 1),
        (1, 2),
    ]


def test_edits_are_sent_in_place_of_the_letters(queue: Callable[[str], Queue], tmp_path: Path) -> None:
    q = queue("edit")
    q.create(q.topic, "edit-orders")
    letter = facts("edit-orders", connector_name="edit")
    q.write([("a", "{bad", letter), ("b", '{"n": 1}', letter), ("c", "dropped", letter)])
    lines = [json.loads(line) for line in q.dlq("show", "--records").stdout.splitlines()]
    lines[0]["value"] = {"n": 0}
    (tmp_path / "edits.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))
    q.write([("d", "later", letter)])
    said = q.dlq("replay", "--edits", str(tmp_path / "edits.jsonl"), "--execute").stdout
    stay = "2 letters left out (0:2, 0:3): not in the edits; still to be sent\n"
    assert said == "2 letters are sent to edit-orders\n" + stay
    assert [(r["key"], r["value"]) for r in q.read("edit-orders")] == [("a", {"n": 0}), ("b", {"n": 1})]
    assert q.dlq("replay", "--execute").stdout == "2 letters are sent to edit-orders\n", (
        "not lost: the edits end before"
    )


def test_edits_that_are_none_are_refused_before_anything_is_sent(queue: Callable[[str], Queue], tmp_path: Path) -> None:
    q = queue("wrong")
    q.create(q.topic, "wrong-orders")
    q.write([(None, "1", facts("wrong-orders", connector_name="wrong"))])
    for text, words in (
        ("{", "line 1 of the edits is not a record as `dlq show --records` prints it"),
        ("[1]", "line 1 of the edits is not a record as `dlq show --records` prints it: it is no object"),
        ('{"partition": 0, "offset": 0, "key": null}', "prints it: it lacks value"),
        ('{"partition": 0, "value": 1}', "prints it: it lacks offset and key"),
        (
            '{"partition": 0, "offset": 0, "key": null, "vlaue": 1}',
            "prints it: it has vlaue, which no letter has; is value meant?",
        ),
        ('{"partition": "0", "offset": 0, "key": null, "value": 1}', 'partition is "0", which is no whole number'),
        (
            '{"partition": 0, "offset": 0, "key": null, "value": {"base64": "!"}}',
            "line 1 of the edits: '!' is not base64",
        ),
    ):
        (tmp_path / "edits.jsonl").write_text(text)
        failed = q.dlq("replay", "--edits", str(tmp_path / "edits.jsonl"), "--execute", fails=True)
        assert words in str(failed.exception)
    assert q.read("wrong-orders") == []


def test_what_is_tried_is_bounded_and_a_worker_that_hangs_up_is_told(queue: Callable[[str], Queue]) -> None:
    tried = queue("tried")
    tried.create("orders-tried", tried.topic)
    tried.write([(None, "x" * 900_000, facts("orders-tried", n, connector_name="tried")) for n in range(12)])
    plan = Plan(
        LetterQueue(ClientConfig(tried.servers), "tried", tried.topic), None, None, again=False, skip_others=False
    )
    plan.rehearse(None)
    assert (len(plan.first), plan.sent["orders-tried"]) == (8, 12)
    plan.rehearse(None)
    assert len(plan.first) == 8, "each rehearsal begins anew"
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=lambda: [server.accept()[0].close() for _ in range(3)], daemon=True).start()
        worker = f"http://127.0.0.1:{server.getsockname()[1]}"
        told = tried.dlq("replay", "--try", "--connect", worker, fails=True)
    assert worker in str(told.exception) and "Traceback" not in told.output
    assert len(tried.open_letters()) == 12 and tried.read("orders-tried") == []


def test_replaying_goes_on_where_it_stopped(queue: Callable[[str], Queue]) -> None:
    """A record in the second transaction is refused: the first stays, the second leaves nothing."""
    q = queue("stopped")
    q.create(q.topic)
    q.create("small", max_message_bytes="50000")
    letter = facts("small", connector_name="stopped")
    q.write([(None, str(n) if n != 700 else json.dumps("x" * 60000), letter) for n in range(1200)])
    assert "small" in str(q.dlq("replay", "--execute", fails=True).exception)
    assert [r["value"] for r in q.read("small")] == list(range(500))
    q("topics", "alter", "small", "--config", "max.message.bytes=1000000")
    q.dlq("replay", "--execute")
    values = [r["value"] for r in q.read("small")]
    assert len(values) == 1200 and values[499:502] == [499, 500, 501] and values[700] == "x" * 60000


def test_letters_that_are_chosen_neither_bring_others_back_nor_pass_them(queue: Callable[[str], Queue]) -> None:
    q = queue("chosen")
    q.create(q.topic, "chosen-orders")
    q.write([(None, str(n), facts("chosen-orders", connector_name="chosen")) for n in range(4)])
    assert q.dlq("replay", "--from", "3", "--execute").stdout == "1 letter is sent to chosen-orders\n"
    assert [r["value"] for r in q.open_letters()] == [0, 1, 2], "those before it are not sent"
    assert q.dlq("replay", "--execute").stdout == "3 letters are sent to chosen-orders\n"
    assert q.dlq("replay", "--from", "0", "--execute").stdout == "4 letters are sent to chosen-orders\n"
    assert q.dlq("replay", "--execute").stdout == "nothing of chosen is left in dlq-chosen\n"


def test_edits_of_earlier_letters_do_not_bring_later_ones_back(queue: Callable[[str], Queue], tmp_path: Path) -> None:
    q = queue("earlier")
    q.create(q.topic, "earlier-orders")
    q.write([(None, str(n), facts("earlier-orders", connector_name="earlier")) for n in range(3)])
    first = q.dlq("show", "--records").stdout.splitlines()[0]
    q.dlq("replay", "--execute")
    (tmp_path / "edits.jsonl").write_text(first + "\n")
    q.dlq("replay", "--edits", str(tmp_path / "edits.jsonl"), "--from", "0", "--execute")
    assert q.dlq("replay", "--execute").stdout == "nothing of earlier is left in dlq-earlier\n"
    assert [r["value"] for r in q.read("earlier-orders")] == [0, 1, 2, 0]


def test_edits_send_the_letters_that_they_name_each_once(queue: Callable[[str], Queue]) -> None:
    q = queue("named")
    q.create(q.topic, "named-orders")
    letter = facts("named-orders", connector_name="named")
    q.write([(None, str(n), letter) for n in range(6)])
    lines = q.open_letters()
    stay = "4 letters left out (0:0, 0:1, 0:3, 0:5): not in the edits; still to be sent"
    assert q.replay([lines[2], lines[4]], "--execute") == ["2 letters are sent to named-orders", stay]
    assert [r["offset"] for r in q.open_letters()] == [0, 1, 3, 5]

    again = q.replay([lines[0] | {"value": "mended"}, lines[2], lines[4]], "--execute")
    assert again[0] == "1 letter is sent to named-orders"
    assert again[-1].startswith(
        "2 letters left out (0:2, 0:4): sent back before (letters of the queue were sent last at 2"
    )
    assert "--from beginning sends them once more" in again[-1]
    assert [r["offset"] for r in q.open_letters()] == [1, 3, 5]
    assert q.replay([lines[2]], "--from", "beginning", "--execute") == [
        "1 letter is sent to named-orders",
        "3 letters left out (0:1, 0:3, 0:5): not in the edits; still to be sent",
    ]
    assert [r["value"] for r in q.read("named-orders")] == [2, 4, "mended", 2]

    strange = q.replay([lines[1] | {"offset": 77}])
    assert strange[1] == "1 letter left out (0:77): the queue has no such letter there"
    assert q.replay([lines[1], lines[5]], "--skip-others", "--execute") == [
        "2 letters are sent to named-orders",
        "1 letter left out (0:3): not in the edits; --skip-others counts that as done",
    ]
    assert q.open_letters() == [] and q.dlq("replay").stdout.startswith("nothing of named is left")
    assert [r["value"] for r in q.read("named-orders")][4:] == [1, 5]


def test_every_letter_of_the_queue_and_of_the_edits_is_reported_once(queue: Callable[[str], Queue]) -> None:
    q = queue("report")
    q.create(q.topic, "report-orders", partitions=2)
    letter = facts("report-orders", connector_name="report")
    q.write([(None, str(n), letter) for n in range(4)])
    q.write([(None, "theirs", facts(connector_name="another")), (None, "9", letter)], partition=1)
    lines = sorted(q.open_letters(), key=lambda r: (r["partition"], r["offset"]))
    named = [lines[0] | {"offset": 77}, lines[1], lines[2], lines[0] | {"partition": 5}]
    for options, verb in (((), "would be"), (("--execute",), "are")):
        told = q.replay(named, *options)[:3]
        assert told == [
            f"2 letters {verb} sent to report-orders",
            "3 letters left out (0:0, 0:3, 1:1): not in the edits; still to be sent",
            "2 letters left out (0:77, 5:0): the queue has no such letter there",
        ]
    assert {(r["partition"], r["offset"]) for r in q.open_letters()} == {(0, 0), (0, 3), (1, 1)}
    letters = json.loads(q.replayed([lines[3]], "--again", "--json").stdout)["letters"]
    assert sorted(letters.values()) == [["0:0", "1:1"], ["0:3"]], "letters that came for the first time, too"


def test_the_time_of_letters_that_were_sent_is_that_of_their_sending(queue: Callable[[str], Queue]) -> None:
    q = queue("timed")
    q.create(q.topic, "timed-orders")
    q.write([(None, str(n), facts("timed-orders", connector_name="timed")) for n in range(3)])
    lines = q.open_letters()
    at = "sent back before (letters of the queue were sent last at 2023-11-14 22:13:20 UTC); --from"
    q.note(*written(Sent(3, ((0, 1),), 1_700_000_000_000), NOTHING))
    assert at in q.replay(lines[:3])[1], "a dry run that would send one"
    for _ in range(2):  # neither sends anything
        assert at in q.replay(lines[1:3], "--execute")[1]
    assert q.replay(lines[:1], "--execute")[0] == "1 letter is sent to timed-orders"
    said = q.replay(lines[:3])[0]
    assert "sent last at 2" in said and at not in said
    q.note(3, "a note of another program")
    assert "3 letters left out (0:0, 0:1, 0:2): sent back before; --from" in q.replay(lines[:3])[0]


def test_edits_name_letters_that_failed_once_more_too(queue: Callable[[str], Queue]) -> None:
    """The edit of the first letter did not help: it came back as another one, and is mended there."""
    q = queue("twice")
    q.create(q.topic, "twice-orders")
    letter = facts("twice-orders", connector_name="twice")
    q.write([(None, "1", letter)])
    q.replay(q.open_letters(), "--execute")
    q.write([(None, "1", {**letter, "tidegate.dlq.replays": "1"}), (None, "2", letter)])
    lines = q.open_letters()
    assert [r["replays"] for r in lines] == [1, 0]
    assert q.replay([lines[0] | {"value": 3}, lines[1]], "--execute") == ["2 letters are sent to twice-orders"]
    assert q.open_letters() == [] and [r["value"] for r in q.read("twice-orders")] == [1, 3, 2]
    assert "without" not in q.replay(lines, "--again")[0] and "0:2" in q.replay(lines, "--again")[0]


def test_more_gaps_than_a_note_has_room_for_are_refused_before_anything_is_sent(queue: Callable[[str], Queue]) -> None:
    q = queue("gaps")
    q.create(q.topic, "gaps-orders")
    letter = facts("gaps-orders", connector_name="gaps")
    q.write([(None, str(n), letter) for n in range(2500)])
    failed = q.replayed(q.open_letters()[::2], "--execute", fails=True)
    assert "gaps between letters that are sent back are too many to note" in str(failed.exception)
    assert q.read("gaps-orders") == []
    q.replay(q.open_letters()[::2], "--skip-others", "--execute")
    assert len(q.read("gaps-orders")) == 1250 and len(q.open_letters()) == 1


def test_causes_that_differ_in_positions_are_shown_as_one(queue: Callable[[str], Queue]) -> None:
    q = queue("alike")
    q.create(q.topic)
    for n in range(3):
        words = f"col1 is no JSON: line 1 column {n} (char {n * 7}), id 6f1d2c4e-1111-4000-8000-00000000000{n}"
        q.write([(None, "x", facts(exception_message=words, connector_name="alike"))])
    q.write([(None, "x", facts(exception_message="col2 is no JSON: line 1 column 0 (char 0)", connector_name="alike"))])
    assert [line for line in q.dlq("show").stdout.splitlines() if " in VALUE_CONVERTER: " in line] == [
        "3 times DataException in VALUE_CONVERTER: col1 is no JSON: line 1 column … (char …), id …",
        "1 time DataException in VALUE_CONVERTER: col2 is no JSON: line 1 column 0 (char 0)",
    ]


def test_letters_without_headers_need_a_topic(queue: Callable[[str], Queue]) -> None:
    q = queue("plain")
    q.create(q.topic, "plain-orders")
    q.write([(None, "1", {})])
    assert "give --to TOPIC" in str(q.dlq("replay", fails=True).exception)
    failed = q.dlq("replay", "--to", "plain-odrers", "--execute", fails=True)
    assert "no such topic: plain-odrers; did you mean plain-orders?" in str(failed.exception)
    assert q.dlq("replay", "--to", "plain-orders", "--execute").stdout == "1 letter is sent to plain-orders\n"


def test_letters_of_a_source_say_in_their_value_what_was_wrong(queue: Callable[[str], Queue]) -> None:
    q = queue("files")
    q.create(q.topic)
    file = "/var/spool/" + "a long way to go/" * 4 + "a.csv"
    for schema in (files._LETTER, telemetry._LETTER):
        assert told_by_source(dict.fromkeys(schema.field_names, "x")) is not None
    letters = [
        {"file": file, "line": 3 + n, "row": n, "error": f"it has {n} columns, and 9 are expected", "text": "x,y"}
        for n in range(2)
    ]
    q.write([(None, json.dumps(letters[0]), {})])
    q.write([(None, json.dumps({"schema": {"type": "struct"}, "payload": letters[1]}), {})])
    _, _, why, names, first, _ = q.dlq("show").stdout.splitlines()
    assert why == "2 times an error in TASK_POLL: it has … columns, and 9 are expected"
    assert names.split() == ["letter", "time", "file", "line", "row", "error", "text"]
    cells = [cell.strip() for cell in first.split("  ") if cell.strip()]
    assert cells[-5:] == [file, "3", "0", "it has 0 columns, and 9 are expected", '"x,y"']
    (cause,) = json.loads(q.dlq("show", "--json").stdout)["causes"]
    assert (cause["stage"], cause["count"]) == ("TASK_POLL", 2)
    lines = q.open_letters()
    assert [line["message"] for line in lines] == [letter["error"] for letter in letters]
    assert "another file" in letter_remedy(cause["stage"], cause["message"])
    assert "a source wrote it" in str(q.replayed(lines, fails=True).exception)


def test_of_letters_without_headers_what_is_known_is_shown(queue: Callable[[str], Queue]) -> None:
    q = queue("bare")
    q.create(q.topic, "bare-orders")
    q.write([("k", "{bad", {}), (None, "2", {"mine": "x"})])
    first, blank, why, names, *rows = q.dlq("show").stdout.splitlines()
    assert (first, blank) == ("2 letters of bare in dlq-bare", "")
    assert why.startswith("2 letters without context: with errors.deadletterqueue.context.headers.enable=true a sink")
    assert names.split() == ["letter", "time", "value"]
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("0:0", '"{bad"'), ("0:1", "2")]
    lines = q.open_letters()
    assert [line.keys() for line in lines] == [{"partition", "offset", "timestamp", "replays", "key", "value"}] * 2
    assert q.replay([lines[0] | {"value": 1}, lines[1]], "--to", "bare-orders", "--execute") == [
        "2 letters are sent to bare-orders"
    ]
    q.write([(None, "3", {"__connect.errors.exception.class.name": "a.NullPointerException"}), (None, "4", {})])
    said = q.dlq("show").stdout.splitlines()
    assert "1 time NullPointerException" in said and "None" not in "".join(said), "nor is anything made up"
    causes = json.loads(q.dlq("show", "--json").stdout)["causes"]
    assert [(cause["stage"], cause["error"], cause["message"], cause["count"]) for cause in causes] == [
        ("", "NullPointerException", "", 1),
        (None, None, None, 1),
    ]


@pytest.mark.proof
def test_letters_of_a_sink_on_a_worker_are_repaired(tmp_path: Path) -> None:
    with running_platform(tmp_path) as platform:
        where = ("--data", platform.data)
        out = tmp_path / "out.txt"
        platform.create(
            "lines",
            connector__class="FileStreamSink",
            topics="lines",
            file=out,
            value__converter="org.apache.kafka.connect.json.JsonConverter",
            value__converter__schemas__enable="false",
            errors__tolerance="all",
            errors__deadletterqueue__topic__name="lines-dlq",
            errors__deadletterqueue__topic__replication__factor="1",
            errors__deadletterqueue__context__headers__enable="true",
        )
        platform.create("without", connector__class="FileStreamSink", topics="lines", file=tmp_path / "all.txt")
        (tmp_path / "in.txt").write_text("1\n{oops\n2\n")
        tidegate("produce", "lines", tmp_path / "in.txt", "--raw", *where)

        def listed() -> list[Any]:
            return json.loads(tidegate("dlq", "list", "--json", *where).stdout)

        letter = {"connector": "lines", "topic": "lines-dlq", "records": 1, "not sent back": 1}
        until(lambda: listed() == [letter], "a letter in the queue")
        edits = tmp_path / "edits.jsonl"
        edits.write_text(
            tidegate("dlq", "show", "lines", "--records", *where).stdout.replace('"{oops"', '{"fixed": 3}')
        )
        tidegate("dlq", "replay", "lines", "--edits", edits, "--execute", *where)
        until(lambda: out.read_text().splitlines() == ["1", "2", '{"fixed": 3}'], "the repaired record in the file")
        assert listed() == [letter | {"not sent back": 0}]
        failed = tidegate("dlq", "show", "without", *where, check=False)
        assert failed.stderr == (
            "error: connector without has no dead letter queue: errors.deadletterqueue.topic.name names it\n"
        )

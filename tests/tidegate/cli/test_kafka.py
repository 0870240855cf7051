"""Daily work on the log by the command line, against a broker of ours and, where the API is Kafka's, Apache Kafka."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, KafkaRecord, NewTopic, TopicPartition
from registry.client import RegistryClient
from tests.support.broker import BrokerThread, settings
from tests.support.platform import until
from tests.support.registry import RegistryThread
from tidegate.cli import tidegate
from tidegate.kit.errors import UsageError

Command = Callable[..., Result]


@pytest.fixture
def command(tidegate_broker: Any, elsewhere: None) -> Command:
    return commands_for(tidegate_broker.bootstrap_servers)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a home without a platform."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(tmp_path / "contexts.json"))


def commands_for(servers: str) -> Command:
    def run(*arguments: str, stdin: str | None = None, fails: bool = False) -> Result:
        result = CliRunner().invoke(tidegate, [*arguments, "--bootstrap-servers", servers], input=stdin)
        assert (result.exit_code != 0) == fails, (result.output, result.exception)
        return result

    run.servers = servers  # type: ignore[attr-defined]
    return run


def filled(command: Command, topic: str, partitions: int = 1) -> None:
    """A topic with the values {"n": 0} to {"n": 9}, the odd ones with key odd, in turn over its partitions."""

    async def fill() -> None:
        config = ClientConfig(command.servers)  # type: ignore[attr-defined]
        async with Admin(config) as admin:
            await admin.create_topics([NewTopic(topic, partitions)])
        async with BatchProducer(config) as producer:
            for n in range(10):
                key = b"odd" if n % 2 else None
                value = json.dumps({"n": n}).encode()
                headers = [("trace", b"t%d" % n)]
                await (await producer.enqueue(topic, key, value, headers, partition=n % partitions))

    asyncio.run(fill())


def shown(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def numbers(result: Result) -> list[int]:
    return [record["value"]["n"] for record in shown(result)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from", "7"], [7, 8, 9]),
        (["--from", "-2"], [8, 9]),
        (["--from", "beginning", "-n", "1"], [0]),
        (["--from", "-1h"], list(range(10))),
        (["--from", "2999-01-01T00:00"], []),
        (["--from", "-100"], list(range(10))),
        (["--key", "odd"], [1, 3, 5, 7, 9]),
        (["--filter", "@.value.n > 7"], [8, 9]),
        (["--filter", "@.key == 'odd' && @.offset < 4"], [1, 3]),
        (["--key", "odd", "-n", "2"], [1, 3]),
    ],
)
def test_consume_starts_and_chooses(command: Command, options: list[str], expected: list[int]) -> None:
    filled(command, topic := f"chosen-{abs(hash(tuple(options)))}")
    assert numbers(command("consume", topic, "--to-end", *options)) == expected


def test_consume_says_that_a_start_is_beyond_the_end(command: Command) -> None:
    filled(command, "ends-soon")
    assert command("consume", "ends-soon", "--to-end", "--from", "10").stderr == ""
    done = command("consume", "ends-soon", "--to-end", "--from", "11")
    assert (done.stdout, done.stderr) == (
        "",
        "offset 11 is beyond the end of ends-soon, which is 10: nothing is printed\n",
    )
    done = command("consume", "ends-soon", "--to-end", "--from", "2999-01-01")
    assert (done.stdout, done.stderr) == ("", "no record of ends-soon is so new: nothing is printed\n")


def test_consume_reads_one_partition_and_names_those_there_are(command: Command) -> None:
    filled(command, "parted", 2)
    records = shown(command("consume", "parted", "--to-end", "--partition", "1"))
    assert [r["value"]["n"] for r in records] == [1, 3, 5, 7, 9] and {r["partition"] for r in records} == {1}
    failed = command("consume", "parted", "--to-end", "--partition", "2", fails=True)
    assert "topic parted has no partition 2: it has 2, from 0 to 1" in str(failed.exception)


def test_consume_leaves_out_headers_or_all_but_values(command: Command) -> None:
    filled(command, "bare")
    assert shown(command("consume", "bare", "--to-end", "-n", "1"))[0]["headers"] == {"trace": "t0"}
    assert "headers" not in shown(command("consume", "bare", "--to-end", "-n", "1", "--no-headers"))[0]
    assert shown(command("consume", "bare", "--to-end", "--values", "-n", "2")) == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from", "soon"], "'soon' is no position: give beginning, end, an offset"),
        (["--filter", "@.value.n >"], "--filter '@.value.n >' is no condition"),
        (["--from", "1", "--from-beginning"], "give --from-beginning or --from, not both"),
        (["--group", "g", "--from", "1"], "`tidegate groups reset` moves it"),
    ],
)
def test_consume_says_what_is_wrong_with_an_option(command: Command, options: list[str], words: str) -> None:
    assert words in command("consume", "any", *options, fails=True).output


def test_consume_in_a_group_goes_on_where_it_stopped(command: Command) -> None:
    filled(command, "shared")
    first = command("consume", "shared", "--group", "readers", "--from-beginning", "-n", "4")
    rest = command("consume", "shared", "--group", "readers", "--to-end")
    assert (numbers(first), numbers(rest)) == ([0, 1, 2, 3], [4, 5, 6, 7, 8, 9])
    described = json.loads(command("groups", "describe", "readers", "--json").stdout)
    assert [row["lag"] for row in described["offsets"]] == [0]


def test_what_consume_prints_can_be_produced(command: Command) -> None:
    filled(command, "there")
    printed = command("consume", "there", "--to-end").stdout
    assert "10 records written to back" in command("produce", "back", "--create", stdin=printed).stderr
    left = [(r["key"], r["value"], r["headers"]) for r in shown(command("consume", "back", "--to-end"))]
    assert left == [(r["key"], r["value"], r["headers"]) for r in map(json.loads, printed.splitlines())]


def test_records_of_schemas_and_bytes_come_back_as_they_were(command: Command) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = {
        "amount": decimal,
        "photo": ["null", "bytes"],
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "days": {"type": "array", "items": {"type": "int", "logicalType": "date"}},
        "id": {"type": "string", "logicalType": "uuid"},
        "either": ["string", "bytes", {"type": "map", "values": decimal}],
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields.items()]}
    rest = {"at": "2026-11-25 10:30:00.000001+00:00", "id": "6f1d2c4e-1111-4000-8000-0123456789ab"}
    values = [
        {"amount": "12.50", "photo": "AP8=", "days": ["2026-11-25"], "either": {"bytes": "AA=="}, **rest},
        {"amount": "-0.01", "photo": None, "days": [], "either": {"a": "1.00"}, **rest},
        {"undecodable": "cut off", "base64": "AAAAAAE="},
    ]
    with RegistryThread() as registry, RegistryClient(registry.url) as client:
        client.register("typed-value", json.dumps(schema))
        where = ("--registry", registry.url)
        lines = "".join(json.dumps({"value": value, "key": {"base64": "/w=="}}) + "\n" for value in values)
        command("produce", "typed", "--create", "--subject", "typed-value", *where, stdin=lines)
        printed = command("consume", "typed", "--to-end", *where).stdout
        command("produce", "again", "--create", "--subject", "typed-value", *where, stdin=printed)
        first, second = ([r.value for r in raw(command, topic)] for topic in ("typed", "again"))
        assert first == second and [r.key for r in raw(command, "again")] == [b"\xff"] * 3
        assert [record["value"] for record in map(json.loads, printed.splitlines())][:2] == values[:2]
        wrong = command(
            "produce", "typed", "--subject", "typed-value", *where, stdin='{"amount": "1.005"}\n', fails=True
        )
        assert 'line 1 does not fit the schema: field amount: "1.005" is more than a decimal' in str(wrong.exception)


def test_numbers_for_decimals_of_a_schema_keep_their_digits(command: Command) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10}
    fields = [{"name": "v", "type": decimal}, {"name": "d", "type": "double", "default": 0}]
    with RegistryThread() as registry, RegistryClient(registry.url) as client:
        client.register("exact-value", json.dumps({"type": "record", "name": "R", "fields": fields}))
        where = ("--subject", "exact-value", "--registry", registry.url)
        lines = '{"v": 1234567890123456789.1234567891, "d": 0.1}\n{"value": {"v": 1e-3, "d": NaN}}\n'
        command("produce", "exact", "--create", *where, stdin=lines)
        printed = command("consume", "exact", "--to-end", "--values", *where[2:]).stdout
        first, second = printed.splitlines()
        assert json.loads(first) == {"v": "1234567890123456789.1234567891", "d": 0.1}
        assert second == '{"v": "0.0010000000", "d": NaN}', "what consume prints of a double is taken back"
        wrong = command("produce", "exact", *where, stdin='{"v": 0.12345678901}\n', fails=True)
        assert "line 1 does not fit the schema: field v: 0.12345678901 is more than a decimal" in str(wrong.exception)
        wrong = command("produce", "exact", *where, stdin='{"value": {"v": 1}, "key": NaN}\n', fails=True)
        assert "line 1: the key: NaN is no number of JSON" in str(wrong.exception)
        assert "1E+400 is too large for a double" in str(
            command("produce", "exact", *where, stdin='{"v": 1, "d": 1e400}\n', fails=True).exception
        )


def test_headers_with_one_name_are_all_printed_and_written(command: Command) -> None:
    pairs = [["at", 1], ["by", "x"], ["at", 2]]
    command("produce", "twice", "--create", stdin=json.dumps({"value": 1, "headers": pairs}) + "\n")
    (record,) = raw(command, "twice", 1)
    assert list(record.headers) == [("at", b"1"), ("by", b"x"), ("at", b"2")]
    (printed,) = shown(command("consume", "twice", "--to-end"))
    assert printed["headers"] == pairs
    wrong = command("produce", "twice", stdin='{"value": 1, "headers": [["at"]]}\n', fails=True)
    assert 'must be an object, or an array of [name, value] pairs, not [["at"]]' in str(wrong.exception)


def test_plain_json_is_written_as_it_stands(command: Command) -> None:
    lines = [
        '{"a":0.12345678901234567890, "b": 1e400,"c":"\\u00e9"}',
        ' {"value": {"a": 0.12345678901234567890, "b": [1.50]}, "key": 1.10, "headers": {"h": 2.50}} ',
        "9" * 5000,
    ]
    command("produce", "verbatim", "--create", stdin="".join(line + "\n" for line in lines))
    first, second, third = raw(command, "verbatim")
    assert (first.value, third.value) == (lines[0].encode(), lines[2].encode())
    assert second.value == b'{"a": 0.12345678901234567890, "b": [1.50]}'
    assert (second.key, list(second.headers)) == (b"1.10", [("h", b"2.50")])
    printed = command("consume", "verbatim", "--to-end").stdout
    assert '"value": {"a": 0.12345678901234567890, "b": 1E+400, "c": "é"}' in printed
    assert '"key": 1.10, "value": {"a": 0.12345678901234567890, "b": [1.50]}, "headers": {"h": 2.50}}' in printed
    few = command("consume", "verbatim", "--to-end", "--filter", "@.value.a < 0.2", "--values").stdout
    assert len(few.splitlines()) == 2
    command("produce", "verbatim-text", "--create", "--text", "--key-field", "n", stdin='{"n":1.0}\n{"n":2}\n{"n":3}\n')
    written = raw(command, "verbatim-text")[0]
    assert (written.key, written.value) == (b"1.0", b'{"n":1.0}')


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("NaN", "line 2: NaN is no number of JSON; --raw takes lines as they are"),
        ('{"value": {"n": [-Infinity]}}', "line 2: -Infinity is no number of JSON"),
        ('{"a": 1, "a": 2}', 'line 2: an object has the member "a" twice'),
        ('{"value": 1, "key": {"é": 1, "b": 2, "é": 3, "é": 4}}', 'line 2: an object has the member "é" 3 times'),
        ("[" * 100_000, "line 2: it is nested too deep"),
        ('{"value": "\\ud800"}', "line 2: 'utf-8' codec can't encode"),
    ],
)
def test_a_line_that_is_no_json_or_is_ambiguous_is_refused(command: Command, line: str, words: str) -> None:
    failed = command("produce", "refused", "--create", stdin=f"1\n{line}\n", fails=True)
    assert words in str(failed.exception) and isinstance(failed.exception, UsageError)


def test_a_line_that_is_no_text_is_refused_and_raw_takes_it(command: Command, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"1\r\n\xff\r\n3")
    failed = command("produce", "no-text", "--create", "lines", fails=True)
    assert "line 2 is not UTF-8 text (invalid start byte at byte 1)" in str(failed.exception)
    command("produce", "no-text", "--create", "--raw", "lines")
    assert [record.value for record in raw(command, "no-text")] == [b"1", b"\xff", b"3"]


def test_lines_of_a_pipe_are_written_as_they_come(command: Command) -> None:
    servers: str = command.servers  # type: ignore[attr-defined]
    line = [sys.executable, "-m", "tidegate.cli", "produce", "piped", "--create", "--bootstrap-servers", servers]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as producing:
        assert producing.stdin is not None and producing.stderr is not None
        try:
            for part in (b'{"n": 1}\n{"n"', b": 2}\r\n"):
                producing.stdin.write(part)
                producing.stdin.flush()
            until(lambda: producing.poll() is not None or "piped" in command("topics", "list").stdout)
            assert [record.value for record in raw(command, "piped", 2)] == [b'{"n": 1}', b'{"n": 2}']
            producing.stdin.write(b'{"n": 3}\n\nno JSON\n{"n": 4}')
            producing.stdin.close()
            assert (
                b"line 5 is not JSON" in (told := producing.stderr.read())
                and b"3 records before it are written" in told
            )
        finally:
            producing.kill()
    assert [record.value for record in raw(command, "piped")][2:] == [b'{"n": 3}']


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(command: Command, tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    with endless.open("wb") as file:
        file.write(b'{"n": 1}\n')
        file.truncate(100_000_000)
    told = "line 2 is longer than 64 MiB"
    assert told in str(command("produce", "endless", "--create", str(endless), fails=True).exception)
    servers: str = command.servers  # type: ignore[attr-defined]
    line = [sys.executable, "-m", "tidegate.cli", "produce", "endless", "--create", "--bootstrap-servers", servers]
    with endless.open("rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as pipe:
        done = subprocess.run(line, stdin=pipe.stdout, capture_output=True, text=True, check=False, timeout=60)
        pipe.kill()
    assert told in done.stderr and "1 record before it is written" in done.stderr and done.returncode == 1


def test_the_end_for_who_reads_committed_records_is_before_an_open_transaction(command: Command) -> None:
    command("produce", "undecided", "--create", stdin='{"n": 1}\n')
    producer = Producer({"bootstrap.servers": command.servers, "transactional.id": "undecided"})  # type: ignore[attr-defined]
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("undecided", b'{"n": 2}', partition=0)
    assert producer.flush(60) == 0
    committed = ("--property", "isolation.level=read_committed")
    assert numbers(command("consume", "undecided", "--to-end", *committed)) == [1]
    assert numbers(command("consume", "undecided", "--to-end")) == [1, 2]
    producer.abort_transaction()


def test_a_platform_without_a_registry_shows_records(command: Command, tmp_path: Path) -> None:
    state = {"pid": os.getpid(), "started": time.time(), "bootstrap_servers": "", "components": {}}
    (tmp_path / "tidegate-data" / "run").mkdir(parents=True)
    (tmp_path / "tidegate-data" / "run" / "platform.json").write_text(json.dumps(state))
    command("produce", "schemaless", "--create", "--raw", stdin='{"n": 1}\n\0\0\0\0\1a\n\0\0\0\0\2b\n')
    result = command("consume", "schemaless", "--to-end", "--values")
    assert result.stderr.startswith("values are shown without their schemas: ") and result.stderr.count("\n") == 1
    assert shown(result) == [{"n": 1}, "\0\0\0\0\1a", "\0\0\0\0\2b"]


def raw(command: Command, topic: str, count: int = 3) -> list[KafkaRecord]:
    """The first records of a topic."""

    async def read() -> list[KafkaRecord]:
        async with BatchConsumer(ClientConfig(command.servers)) as consumer:  # type: ignore[attr-defined]
            await consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek(TopicPartition(topic, 0), 0)
            records: list[KafkaRecord] = []
            deadline = time.monotonic() + 60
            while len(records) < count and time.monotonic() < deadline:
                records += [r for fetched in await consumer.fetch(max_wait_ms=500) for r in fetched.records()]
            return records

    return asyncio.run(read())


def test_bytes_and_documents_that_look_like_bytes_come_back(command: Command) -> None:
    lines = [{"base64": "/wA="}, {"base64": "eyJiYXNlNjQiOiAiQUFBQSJ9"}, {"base64": "no base64"}]
    command("produce", "bytes", "--create", stdin="".join(json.dumps(line) + "\n" for line in lines))
    expected = [b"\xff\x00", b'{"base64": "AAAA"}', b'{"base64": "no base64"}']
    assert [record.value for record in raw(command, "bytes")] == expected
    command("produce", "bytes-again", "--create", stdin=command("consume", "bytes", "--to-end").stdout)
    assert [record.value for record in raw(command, "bytes-again")] == expected


def test_text_comes_back_without_quotes_if_asked_for(command: Command) -> None:
    command("produce", "texts", "--create", "--raw", stdin="one {\n2\n")
    printed = command("consume", "texts", "--to-end").stdout
    command("produce", "unquoted", "--create", "--text", stdin=printed + '{"a": 1}\n')
    assert [record.value for record in raw(command, "unquoted")] == [b"one {", b"2", b'{"a": 1}']
    assert (
        "--text is for values that are JSON"
        in command("produce", "texts", "--create", "--text", "--raw", fails=True).output
    )


def test_produce_takes_keys_headers_and_a_partition_from_options(command: Command) -> None:
    command("topics", "create", "made", "--partitions", "3")
    options = ["--key", "k", "--header", "source=test", "--partition", "2"]
    command("produce", "made", *options, stdin='{"n": 1}\n{"value": 2, "key": "mine", "headers": {"more": "x"}}\n')
    first, second = shown(command("consume", "made", "--to-end"))
    assert (first["key"], first["partition"], first["headers"]) == ("k", 2, {"source": "test"})
    assert (second["key"], second["value"], second["headers"]) == ("mine", 2, {"source": "test", "more": "x"})


def test_produce_takes_the_key_from_a_field(command: Command) -> None:
    command("produce", "fields", "--create", "--key-field", "id", stdin='{"id": 7}\n{"id": "x"}\n')
    assert [r["key"] for r in shown(command("consume", "fields", "--to-end"))] == [7, "x"]
    for partition in ("x", True, 0.5, -1):
        line = json.dumps({"value": 1, "partition": partition})
        failed = command("produce", "fields", "--create", stdin=line, fails=True)
        assert f'line 1: "partition" must be the number of one, not {json.dumps(partition)}' in str(failed.exception)
    failed = command("produce", "fields", "--create", "--key-field", "id", stdin='{"id": 7}\n{"name": 1}\n', fails=True)
    assert "line 2 has no field id, which --key-field takes as the key" in str(failed.exception)


def test_produce_raw_takes_lines_as_they_are(command: Command) -> None:
    command("produce", "lines", "--create", "--raw", stdin="one {\n\n  two\n")
    assert [r["value"] for r in shown(command("consume", "lines", "--to-end"))] == ["one {", "", "  two"]
    assert "--raw takes lines as they are" in str(
        command("produce", "lines", "--create", stdin="one {\n", fails=True).exception
    )


def test_a_record_without_a_key_is_refused_where_the_topic_is_compacted(command: Command, tmp_path: Path) -> None:
    command("topics", "create", "newest", "--config", "cleanup.policy=compact,delete")
    (tmp_path / "lines").write_text('{"value": 1, "key": "a"}\n{"value": 2}\n')
    for source, stdin in ((str(tmp_path / "lines"), None), ("-", '{"n": 1}\n')):
        failed = command("produce", "newest", source, stdin=stdin, fails=True)
        line = 1 if stdin else 2
        assert f"line {line} has no key, and topic newest is compacted" in str(failed.exception)
    assert shown(command("consume", "newest", "--to-end")) == []
    command("produce", "newest", str(tmp_path / "lines"), "--key", "b")
    assert [r["key"] for r in shown(command("consume", "newest", "--to-end"))] == ["a", "b"]


def test_produce_creates_a_topic_unless_its_name_looks_misspelt(command: Command) -> None:
    first = command("produce", "payments", stdin="1\n")
    assert first.stderr == "topic payments is created\n1 record written to payments\n"
    failed = command("produce", "paymnets", stdin="1\n", fails=True)
    assert str(failed.exception) == "there is no topic paymnets; did you mean payments? --create makes paymnets"
    assert "topic paymnets is created" in command("produce", "paymnets", "--create", stdin="1\n").stderr
    assert command("produce", "payments", "--create", stdin="2\n").stderr == "1 record written to payments\n"
    command("produce", "payments-2", stdin="1\n")


def test_a_misspelt_topic_or_group_is_answered_with_the_nearest(command: Command) -> None:
    filled(command, "temperatures")
    command("consume", "temperatures", "--group", "thermometers", "--to-end")
    for arguments in (
        ("topics", "describe", "temperaturs"),
        ("topics", "alter", "temperaturs", "--config", "retention.ms=1000"),
        ("topics", "alter", "temperaturs", "--partitions", "3"),
        ("topics", "delete", "temperatures", "temperaturs"),
        ("consume", "temperaturs", "--to-end"),
        ("records", "delete", "temperaturs", "--before", "1"),
        ("groups", "reset", "g", "--to", "end", "--topic", "temperaturs:0"),
    ):
        failed = command(*arguments, fails=True)
        assert "no such topic: temperaturs; did you mean temperatures?" in str(failed.exception), arguments
    assert len(shown(command("consume", "temperatures", "--to-end"))) == 10, "nothing is deleted"
    for arguments in (("describe", "thermometer"), ("delete", "thermometers", "thermometer")):
        failed = command("groups", *arguments, fails=True)
        assert str(failed.exception) == "there is no group thermometer; did you mean thermometers?"
    failed = command("groups", "reset", "thermometer", "--to", "end", fails=True)
    assert str(failed.exception).endswith("that it is to read, or did you mean thermometers?")
    command("groups", "delete", "thermometers")


@pytest.mark.parametrize(("position", "expected"), [("beginning", 0), ("end", 10), ("4", 4), ("-3", 7), ("-1h", 0)])
def test_a_group_is_reset_only_when_told_to(command: Command, position: str, expected: int) -> None:
    topic, group = f"reset{position}", f"group{position}"
    filled(command, topic)
    command("consume", topic, "--group", group, "--from-beginning", "-n", "5")
    dry = command("groups", "reset", group, "--to", position)
    assert dry.stdout.splitlines()[-1] == "nothing is changed: --execute does it"
    assert dry.stdout.splitlines()[1].split() == [topic, "0", "5", str(expected), str(10 - expected)]
    assert committed(command, group, topic) == 5
    done = json.loads(command("groups", "reset", group, "--to", position, "--execute", "--json").stdout)
    assert done["offsets"] == [{"topic": topic, "partition": 0, "from": 5, "to": expected, "lag": 10 - expected}]
    assert committed(command, group, topic) == expected


def committed(command: Command, group: str, topic: str) -> int:
    rows = json.loads(command("groups", "describe", group, "--json").stdout)["offsets"]
    return next(row["committed"] for row in rows if row["topic"] == topic)


def test_a_new_group_is_reset_for_named_partitions(command: Command) -> None:
    filled(command, "wide", 2)
    assert "name the topics that it is to read" in str(
        command("groups", "reset", "fresh", "--to", "end", fails=True).exception
    )
    command("groups", "reset", "fresh", "--to", "end", "--topic", "wide:1", "--execute")
    offsets = json.loads(command("groups", "describe", "fresh", "--json").stdout)["offsets"]
    assert [(row["partition"], row["committed"]) for row in offsets] == [(1, 5)]
    failed = command("groups", "reset", "fresh", "--to", "end", "--topic", "wide:2", fails=True)
    assert "--topic wide:2: topic wide has the partitions 0 to 1" in str(failed.exception)


def test_a_group_with_members_is_not_reset(command: Command) -> None:
    filled(command, "busy")

    async def reset_while_it_reads() -> Result:
        properties = {"group.id": "members", "client.id": "reader-1", "auto.offset.reset": "earliest"}
        config = ClientConfig(command.servers, properties)  # type: ignore[attr-defined]
        async with BatchConsumer(config) as consumer:
            await consumer.subscribe(["busy"])
            deadline = time.monotonic() + 60
            while not await consumer.fetch(max_wait_ms=200):
                assert time.monotonic() < deadline
            await consumer.commit()
            reset = ("groups", "reset", "members", "--to", "beginning", "--execute")
            return await asyncio.to_thread(command, *reset, fails=True)

    failed = asyncio.run(reset_while_it_reads())
    assert "group members has members (reader-1): stop them before its offsets are moved" in str(failed.exception)


def test_records_are_deleted_only_when_told_to(command: Command) -> None:
    filled(command, "old", 2)
    dry = command("records", "delete", "old", "--before", "-2")
    assert [line.split() for line in dry.stdout.splitlines()[1:3]] == [
        ["0", "0", "3", "5", "3"],
        ["1", "0", "3", "5", "3"],
    ]
    assert len(shown(command("consume", "old", "--to-end"))) == 10
    done = command("records", "delete", "old", "--before", "-2", "--partition", "1", "--execute")
    assert done.stdout.splitlines()[-1] == "3 offsets are deleted"
    records = shown(command("consume", "old", "--to-end"))
    assert {(r["partition"], r["offset"]) for r in records} == {(0, n) for n in range(5)} | {(1, 3), (1, 4)}


def test_an_offset_behind_the_end_is_a_slip(command: Command) -> None:
    filled(command, "short")
    for arguments in (
        ("records", "delete", "short", "--before", "999"),
        ("groups", "reset", "g", "--topic", "short", "--to", "999"),
    ):
        failed = command(*arguments, "--execute", fails=True)
        assert "offset 999 is beyond the end of short-0, which is 10" in str(failed.exception)
    assert len(shown(command("consume", "short", "--to-end"))) == 10


def test_topics_of_components_are_listed_only_when_asked_for(command: Command) -> None:
    for name in ("_schemas", "connect-status", "mine"):
        command("topics", "create", name)

    def listed(*options: str) -> set[str]:
        return {row["topic"] for row in json.loads(command("topics", "list", "--json", *options).stdout)}

    assert "mine" in listed() and not {"_schemas", "connect-status"} & listed()
    assert {"mine", "_schemas", "connect-status"} <= listed("--internal")


def test_commands_for_topics_say_what_they_did(command: Command) -> None:
    assert command("topics", "create", "told").stdout == "topic told is created, with 1 partition\n"
    altered = command("topics", "alter", "told", "--partitions", "2", "--config", "retention.ms=1000")
    assert altered.stdout == "topic told has retention.ms=1000, 2 partitions\n"
    removed = command("topics", "alter", "told", "--delete-config", "retention.ms").stdout
    assert removed == "topic told has the default of retention.ms\n"
    assert json.loads(command("topics", "describe", "told", "--json").stdout)["configs"] == {}
    empty = command("topics", "alter", "told", "--config", "retention.ms=", fails=True).output
    assert "--config retention.ms= has no value: give one, or --delete-config retention.ms to remove" in empty
    assert command("topics", "delete", "told").stdout == "topic told is deleted\n"
    told = json.loads(command("topics", "create", "told", "--json").stdout)
    assert told == [{"topic": "told", "action": "created", "partitions": 1}]
    assert "nothing to change" in command("topics", "alter", "told", fails=True).output


def test_groups_and_records_of_apache_kafka(apache_kafka: Any, elsewhere: None) -> None:
    command = commands_for(apache_kafka.bootstrap_servers)
    filled(command, "theirs")
    assert numbers(command("consume", "theirs", "--group", "g", "--from-beginning", "-n", "4")) == [0, 1, 2, 3]
    command("groups", "reset", "g", "--to", "-1", "--execute")
    assert numbers(command("consume", "theirs", "--group", "g", "--to-end")) == [9]
    command("records", "delete", "theirs", "--before", "8", "--execute")
    assert numbers(command("consume", "theirs", "--to-end")) == [8, 9]
    assert "did you mean theirs?" in str(command("produce", "theris", stdin="1\n", fails=True).exception)
    assert command("produce", "theris", "--create", stdin="1\n").stderr.startswith("topic theris is created\n")
    command("topics", "create", "compacted", "--config", "cleanup.policy=compact")
    failed = command("produce", "compacted", stdin="1\n", fails=True)
    assert "line 1 has no key, and topic compacted is compacted" in str(failed.exception)
    for arguments in (("describe", "thiers"), ("alter", "thiers", "--config", "retention.ms=9"), ("delete", "thiers")):
        assert "no such topic: thiers; did you mean" in str(command("topics", *arguments, fails=True).exception)


def test_the_first_record_at_a_time_is_found(command: Command) -> None:
    filled(command, "timed")

    async def first_time() -> int:
        async with Admin(ClientConfig(command.servers)) as admin:  # type: ignore[attr-defined]
            there = await admin.offsets_for_times({TopicPartition("timed", 0): 0})
            result = there[TopicPartition("timed", 0)]
            assert result is not None
            return result.timestamp_ms

    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(asyncio.run(first_time()) / 1000))
    assert numbers(command("consume", "timed", "--to-end", "--from", moment)) == list(range(10))


@pytest.fixture
def guarded(tmp_path: Path, elsewhere: None) -> Iterator[Command]:
    """Commands as a super user of a broker with an authorizer."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    guarded = settings(tmp_path / "data", authorizer_class_name=authorizer, super_users="User:ANONYMOUS")
    with BrokerThread(guarded) as broker:
        yield commands_for(broker.bootstrap_servers)


def entries(result: Result) -> list[tuple[str, ...]]:
    return [tuple(entry.values()) for entry in json.loads(result.stdout)]


def test_access_control_entries_are_added_listed_and_removed(guarded: Command) -> None:
    added = guarded(
        "acls", "add", "--allow", "ann", "--operation", "read", "--operation", "describe", "--topic", "orders"
    )
    lines = [line.split() for line in added.stdout.splitlines()[1:]]
    assert lines == [
        ["topic", "orders", "literal", "User:ann", "*", "describe", "allow"],
        ["topic", "orders", "literal", "User:ann", "*", "read", "allow"],
    ]
    guarded(
        "acls", "add", "--deny", "bob", "--operation", "write", "--topic", "ord", "--prefixed", "--host", "10.0.0.1"
    )
    guarded("acls", "add", "--allow", "*", "--operation", "describe-configs", "--cluster")
    applying = entries(guarded("acls", "list", "--topic", "orders", "--json"))
    assert [(e[1], e[3], e[5]) for e in applying] == [
        ("ord", "User:bob", "write"),
        ("orders", "User:ann", "describe"),
        ("orders", "User:ann", "read"),
    ]
    assert entries(guarded("acls", "list", "--principal", "*", "--json")) == [
        ("cluster", "kafka-cluster", "literal", "User:*", "*", "describe_configs", "allow")
    ]
    dry = guarded("acls", "remove", "--topic", "orders", "--principal", "ann")
    assert dry.stdout.splitlines()[-1] == "nothing is changed: --execute does it"
    assert len(entries(guarded("acls", "list", "--json"))) == 4
    done = guarded("acls", "remove", "--topic", "orders", "--principal", "ann", "--operation", "read", "--execute")
    assert done.stdout.splitlines()[-1] == "1 removed"
    assert [e[5] for e in entries(guarded("acls", "list", "--json"))] == ["describe_configs", "write", "describe"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--topic", "a", "--group", "b"], "give one of --topic, --group"),
        (["add", "--operation", "read", "--topic", "a"], "give --allow USER or --deny USER"),
        (["add", "--operation", "read", "--allow", "x"], "give one of --topic, --group"),
        (["add", "--operation", "reed", "--allow", "x", "--topic", "a"], "--operation 'reed' is none of all, read"),
        (["remove", "--execute"], "name a resource (--topic, ...), a user (--principal), or both"),
    ],
)
def test_acls_say_what_is_wrong_with_an_option(command: Command, arguments: list[str], words: str) -> None:
    assert words in command("acls", *arguments, fails=True).output


def test_acls_of_a_broker_without_an_authorizer_say_so(command: Command) -> None:
    assert "authorizer" in str(command("acls", "list", fails=True).exception).lower()


@pytest.mark.parametrize("server", ["tidegate_broker", "apache_kafka"])
def test_quotas_are_set_and_removed(server: str, elsewhere: None, request: pytest.FixtureRequest) -> None:
    command = commands_for(request.getfixturevalue(server).bootstrap_servers)

    def listed() -> list[list[Any]]:
        return [list(row.values()) for row in json.loads(command("quotas", "list", "--json").stdout)]

    said = command("quotas", "set", "--user", "ann", "--produce", "1000000", "--request", "50").stdout
    assert said == "user ann: producer_byte_rate is 1e+06\nuser ann: request_percentage is 50\n".replace(
        "1e+06", "1,000,000"
    )
    command("quotas", "set", "--client-id", "default", "--consume", "5")
    until(lambda: len(listed()) == 3)
    assert listed() == [
        ["", "default", "", "consumer_byte_rate", 5.0],
        ["ann", "", "", "producer_byte_rate", 1000000.0],
        ["ann", "", "", "request_percentage", 50.0],
    ]
    assert command("quotas", "list").stdout.splitlines()[2].split() == ["ann", "producer_byte_rate", "1,000,000"]
    command("quotas", "remove", "--user", "ann", "produce")
    until(lambda: len(listed()) == 2)
    command("quotas", "remove", "--user", "ann")
    command("quotas", "remove", "--client-id", "default")
    until(lambda: listed() == [])
    assert "give --user, --client-id or both, or --ip" in command("quotas", "set", "--produce", "1", fails=True).output
    removed = command("quotas", "remove", "--user", "ann", "produce", fails=True)
    assert "user ann has no producer_byte_rate" in str(removed.exception)


@pytest.mark.parametrize("server", ["tidegate_broker", "apache_kafka"])
def test_scram_passwords_are_set_listed_and_deleted(
    server: str, elsewhere: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = commands_for(request.getfixturevalue(server).bootstrap_servers)

    def listed() -> list[list[Any]]:
        return [list(row.values()) for row in json.loads(command("scram", "list", "--json").stdout)]

    monkeypatch.setenv("TIDEGATE_NEW_PASSWORD", "a long secret")
    said = command("scram", "set", "ann").stdout
    assert said == "ann has a password for SCRAM-SHA-256 and SCRAM-SHA-512\n"
    until(lambda: len(listed()) == 2)
    assert listed() == [["ann", "SCRAM-SHA-256", 4096], ["ann", "SCRAM-SHA-512", 4096]]
    assert (
        command("scram", "delete", "ann").stdout == "ann has no password for SCRAM-SHA-256 or SCRAM-SHA-512 any more\n"
    )
    until(lambda: listed() == [])
    assert "ann" in str(command("scram", "delete", "ann", fails=True).exception)

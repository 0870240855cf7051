"""The writer of all object sinks, through the sink to the local disk."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConnectError, DataError, Header, RecordBatch, Schema, SchemaType, TopicPartition
from connectors.local.config import LocalSinkConfig
from connectors.local.sink import LocalSinkConnector
from tests.support.connect import FakeContext, sink_task
from tests.support.objects import EPOCH_MS, ROW, batch, files_below, read_file, row
from tidegate.kit.config import validate

HOUR = 3_600_000
P0 = TopicPartition("events", 0)


def properties(root: Path, **more: str) -> dict[str, str]:
    properties = {
        "store.url": f"file://{root}",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "3",
    }
    return properties | {name.replace("_", "."): value for name, value in more.items()}


def started(root: Path, context: FakeContext | None = None, **more: str) -> Any:
    task = sink_task(LocalSinkConnector, properties(root, **more), context)
    try:
        task.open([P0])
    except ConnectError:
        task.stop()
        raise
    return task


def write(root: Path, batches: Sequence[RecordBatch], **more: str) -> dict[str, list[Any]]:
    """The files after these batches, by name below the topic's folder, with the ids in them."""
    task = started(root, **more)
    for each in batches:
        task.put([each])
    task.stop()
    prefix = "topics/events/"
    return {name.removeprefix(prefix): [row["id"] for row in read_file(root / name)] for name in files_below(root)}


def test_a_file_holds_flush_size_records_and_is_named_by_its_first(tmp_path: Path) -> None:
    task = started(tmp_path)
    task.put([batch([row(n) for n in range(7)], 100)])
    assert files_below(tmp_path) == [
        "topics/events/partition=0/events+0+0000000100.json",
        "topics/events/partition=0/events+0+0000000103.json",
    ]
    assert [each["id"] for each in read_file(tmp_path / "topics/events/partition=0/events+0+0000000103.json")] == [
        3,
        4,
        5,
    ]
    assert task.pre_commit({P0: 107}) == {P0: 106}
    task.put([batch([row(7), row(8)], 107)])
    assert task.pre_commit({P0: 112}) == {P0: 112}  # nothing is open: filtered records behind count as done
    task.stop()


def test_no_offset_is_committed_before_the_first_file(tmp_path: Path) -> None:
    task = started(tmp_path)
    task.put([batch([row(0)], 5)])
    assert task.pre_commit({P0: 6}) == {}
    task.stop()
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    "format_class, extension, more",
    [
        ("io.confluent.connect.s3.format.parquet.ParquetFormat", ".snappy.parquet", {}),
        ("io.confluent.connect.hdfs.parquet.ParquetFormat", ".zstd.parquet", {"parquet.codec": "zstd"}),
        ("ParquetFormat", ".parquet", {"parquet.codec": "none"}),
        ("io.confluent.connect.s3.format.avro.AvroFormat", ".avro", {}),
        ("io.confluent.connect.s3.format.avro.AvroFormat", ".avro", {"avro.codec": "deflate"}),
        ("io.confluent.connect.s3.format.avro.AvroFormat", ".avro", {"avro.codec": "snappy"}),
        ("io.confluent.connect.s3.format.avro.AvroFormat", ".avro", {"avro.codec": "bzip2"}),
        ("io.confluent.connect.s3.format.json.JsonFormat", ".json", {"json.decimal.format": "NUMERIC"}),
    ],
)
def test_other_libraries_read_each_format(
    tmp_path: Path, format_class: str, extension: str, more: dict[str, str]
) -> None:
    schema = Schema.struct(
        {
            "id": Schema(SchemaType.INT64),
            "small": Schema(SchemaType.INT8),
            "name": Schema(SchemaType.STRING, optional=True),
            "price": Schema.decimal(2, 10),
            "day": Schema.date(optional=True),
            "at": Schema.timestamp(),
            "tags": Schema.array(Schema(SchemaType.STRING)),
            "where": Schema.struct({"lat": Schema(SchemaType.FLOAT64)}, name="place"),
            "raw": Schema(SchemaType.BYTES),
        },
        name="shop.Order",
    )
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC)
    order = {"id": 1, "small": -3, "name": "é\n", "price": Decimal("1.25"), "day": dt.date(2024, 2, 29), "at": at,
             "tags": ["a", "b"], "where": {"lat": 1.5}, "raw": b"\x00\xff"}  # fmt: skip
    orders = [order, order | {"id": 2, "name": None, "day": None, "tags": []}, order | {"id": 3}]
    task = started(tmp_path, format_class=format_class, **more)
    task.put([batch(orders, schema=schema, times=[EPOCH_MS] * 3)])
    task.stop()
    (name,) = files_below(tmp_path)
    assert name.endswith(f"events+0+0000000000{extension}")
    content = read_file(tmp_path / name)
    if extension == ".json":
        assert content[0] == {"id": 1, "small": -3, "name": "é\n", "price": 1.25, "day": 19782, "at": 1704164645678,
                            "tags": ["a", "b"], "where": {"lat": 1.5}, "raw": "AP8="}  # fmt: skip
        assert [each["id"] for each in content] == [1, 2, 3] and content[1]["name"] is None
    else:
        assert content == orders


def test_schemaless_records_become_json_lines(tmp_path: Path) -> None:
    task = started(tmp_path, flush_size="2")
    task.put([batch([{"id": 1, "x": [1, {"y": None}]}, {"id": 2}], schema=None)])
    task.stop()
    (name,) = files_below(tmp_path)
    assert read_file(tmp_path / name) == [{"id": 1, "x": [1, {"y": None}]}, {"id": 2}]


def test_raw_values_are_written_as_they_are(tmp_path: Path) -> None:
    task = started(tmp_path, format_class="ByteArrayFormat", **{"format.bytearray.separator": "\\t", "flush.size": "2"})
    task.put([batch([b"a\n", b"b"], schema=Schema(SchemaType.BYTES), times=[0, 0])])  # type: ignore[list-item]
    task.stop()
    (name,) = files_below(tmp_path)
    assert name.endswith(".bin") and (tmp_path / name).read_bytes() == b"a\n\tb\t"


@pytest.mark.parametrize("format_class", ["ParquetFormat", "AvroFormat"])
def test_a_format_that_needs_a_schema_says_so(tmp_path: Path, format_class: str) -> None:
    task = started(tmp_path, format_class=format_class)
    with pytest.raises(DataError, match="use a converter with schemas"):
        task.put([batch([{"id": 1}], schema=None)])
    task.stop()


def test_fields_make_folders(tmp_path: Path) -> None:
    files = write(
        tmp_path, [batch([row(n) for n in range(6)])], flush_size="6", partitioner_class="FieldPartitioner",
        partition_field_name="city",
    )  # fmt: skip
    assert files == {
        "city=de/events+0+0000000000.json": [0, 3],
        "city=fr/events+0+0000000001.json": [1, 4],
        "city=null/events+0+0000000002.json": [2, 5],
    }


def test_several_fields_make_nested_folders(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        [batch([row(n) for n in (0, 1, 3)])],
        partitioner_class="FieldPartitioner",
        partition_field_name="city,id",
    )
    assert sorted(files) == [
        "city=de/id=0/events+0+0000000000.json",
        "city=de/id=3/events+0+0000000002.json",
        "city=fr/id=1/events+0+0000000001.json",
    ]


def test_fields_and_time_make_folders(tmp_path: Path) -> None:
    files = write(
        tmp_path, [batch([row(n, EPOCH_MS + n * HOUR) for n in (0, 1, 3)])],
        partitioner_class="com.canelmas.kafka.connect.FieldAndTimeBasedPartitioner", partition_field_name="city",
        path_format="'h'=HH", partition_duration_ms=str(2 * HOUR), timezone="UTC",
        timestamp_extractor="io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordTimestampExtractor",
    )  # fmt: skip
    assert [name.rpartition("/")[0] for name in files] == ["city=de/h=00", "city=de/h=02", "city=fr/h=00"]


@pytest.mark.parametrize(
    "more, folders",
    [
        ({"partitioner.class": "DailyPartitioner"}, ["year=2023/month=12/day=31", "year=2024/month=01/day=01"]),
        (
            {"partitioner.class": "HourlyPartitioner"},
            [
                "year=2023/month=12/day=31/hour=23",
                "year=2024/month=01/day=01/hour=00",
                "year=2024/month=01/day=01/hour=01",
            ],
        ),
        (
            {
                "partitioner.class": "TimeBasedPartitioner",
                "path.format": "YYYY/'q'MM-HH",
                "partition.duration.ms": str(2 * HOUR),
            },
            ["2023/q12-22", "2024/q01-00"],
        ),
    ],
)
@pytest.mark.parametrize("extractor", ["Record", "RecordField"])
def test_times_make_folders_on_the_wall_clock(
    tmp_path: Path, more: dict[str, str], folders: list[str], extractor: str
) -> None:
    zone_ms = HOUR  # Berlin's midnight in winter is an hour before UTC's
    rows = [row(n, EPOCH_MS - zone_ms + (n - 1) * HOUR) for n in range(3)]
    files = write(
        tmp_path, [batch(rows)], timezone="Europe/Berlin", timestamp_extractor=extractor, timestamp_field="at", **more
    )
    assert sorted({name.rpartition("/")[0] for name in files}) == folders


def test_files_end_by_the_time_of_records(tmp_path: Path) -> None:
    rows = [row(n, EPOCH_MS + n * 400) for n in range(6)]
    files = write(tmp_path, [batch(rows)], flush_size="100", rotate_interval_ms="1000", timestamp_extractor="Record")
    assert list(files.values()) == [[0, 1, 2]]  # 3 to 5 are open still
    files = write(tmp_path / "b", [batch(rows[:2]), batch(rows[2:4], 2), batch(rows[4:], 4)], flush_size="100",
                  rotate_interval_ms="1000", timestamp_extractor="Record")  # fmt: skip
    assert list(files.values()) == [[0, 1, 2]]


def test_another_folder_ends_files_when_rotating_by_time(tmp_path: Path) -> None:
    more = {"partitioner_class": "FieldPartitioner", "partition_field_name": "city", "rotate_interval_ms": "99999",
            "timestamp_extractor": "Record", "flush_size": "100"}  # fmt: skip
    rows = [row(n) for n in (0, 3, 1, 4, 6, 9)]
    assert list(write(tmp_path, [batch(rows)], **more).values()) == [[0, 3], [1, 4]]
    kept = write(tmp_path / "b", [batch(rows)], **more, **{"rotate.file.on.partition.change": "false"})
    assert kept == {}


def test_files_end_by_the_clock(tmp_path: Path) -> None:
    task = started(tmp_path, flush_size="100", rotate_schedule_interval_ms="60000", timezone="UTC")
    now = EPOCH_MS + 59_000
    task.now_ms.__func__  # the clock is a method, so that a test may turn it
    clock = [now]
    for part in (task._parts,):
        object.__setattr__(part, "now_ms", lambda: clock[0])
    task.put([batch([row(0)])])
    task.put([])
    assert files_below(tmp_path) == []
    clock[0] += 1_000
    task.put([])
    assert len(files_below(tmp_path)) == 1
    assert task.pre_commit({P0: 1}) == {P0: 1}
    task.stop()


def versioned(version: int, *names: str) -> Schema:
    fields = {name: Schema(SchemaType.INT64, optional=name != "id") for name in ("id", *names)}
    return Schema.struct(fields, name="row", version=version)


@pytest.mark.parametrize(
    "rule, files",
    [
        ("NONE", [[{"id": 0}], [{"id": 1, "a": 9}], [{"id": 2}]]),
        ("BACKWARD", [[{"id": 0}], [{"id": 1, "a": 9}, {"id": 2, "a": None}]]),
        ("FULL", [[{"id": 0}], [{"id": 1, "a": 9}, {"id": 2, "a": None}]]),
        ("FORWARD", [[{"id": 0}, {"id": 1}, {"id": 2}]]),
    ],
)
def test_another_schema_follows_the_rule(tmp_path: Path, rule: str, files: list[Any]) -> None:
    task = started(tmp_path, flush_size="100", schema_compatibility=rule)
    old, new = versioned(1), versioned(2, "a")
    task.put(
        [
            batch([{"id": 0}], 0, schema=old),
            batch([{"id": 1, "a": 9}], 1, schema=new),
            batch([{"id": 2}], 2, schema=old),
        ]
    )
    task._writers[P0]._rotate()
    task.stop()
    assert [read_file(tmp_path / name) for name in files_below(tmp_path)] == files


def test_a_rule_by_versions_needs_versions(tmp_path: Path) -> None:
    task = started(tmp_path, schema_compatibility="BACKWARD")
    other = Schema.struct({"id": Schema(SchemaType.INT32)}, name="row")
    with pytest.raises(DataError, match="schema.compatibility=BACKWARD compares versions"):
        task.put([batch([row(0)]), batch([{"id": 1}], 1, schema=other)])
    task.stop()


def test_tombstones_are_left_out_or_reported(tmp_path: Path) -> None:
    rows = batch([row(0), None, row(2), row(3)])
    letters = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    silent = {"report.null.values.to.dlq": "false"}
    cases = [("ignore", {}, []), ("fail", {}, [1]), ("ignore", letters, [1]), ("ignore", letters | silent, [])]
    for number, (rule, more, reported) in enumerate(cases):
        root = tmp_path / str(number)
        context = FakeContext(more)
        task = started(root, context, behavior_on_null_values=rule, **more)
        task.put([rows])
        assert [record.offset for record, _ in context.errant] == reported
        assert [each["id"] for each in read_file(root / files_below(root)[0])] == [0, 2, 3]
        task.stop()


def test_a_put_that_failed_may_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = started(tmp_path)
    batches = [batch([row(n) for n in range(8)])]
    store = task._store
    rename, failures = store._rename, iter([False, True])

    def failing(old: str, new: str) -> None:
        if next(failures, False):
            raise ConnectError("the disk is away")
        rename(old, new)

    monkeypatch.setattr(store, "_rename", failing)
    with pytest.raises(ConnectError, match="the disk is away"):
        task.put(batches)
    task.put(batches)
    task.stop()
    assert [[each["id"] for each in read_file(tmp_path / name)] for name in files_below(tmp_path)] == [
        [0, 1, 2],
        [3, 4, 5],
    ]


@settings(max_examples=40, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    crash_after=st.integers(0, 40),
    flush=st.integers(1, 7),
    by_field=st.booleans(),
)
def test_every_record_is_stored_once_whenever_it_crashes(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], crash_after: int, flush: int, by_field: bool
) -> None:
    """A crash at any write or rename, then a restart at the group's committed offset, cut into other batches."""
    root = tmp_path_factory.mktemp("crash")
    more = {"flush_size": str(flush)}
    if by_field:
        more |= {"partitioner_class": "FieldPartitioner", "partition_field_name": "city"}
    rows = [row(n) for n in range(60)]
    committed, start, steps = 0, 0, iter(range(crash_after))
    task = started(root, **more)

    class Crash(BaseException):
        pass

    def counted(do: Any) -> Any:
        def step(*arguments: Any) -> None:
            if next(steps, None) is None:
                raise Crash
            do(*arguments)

        return step

    for name in ("_bring", "_write", "_rename"):
        setattr(task._store, name, counted(getattr(task._store, name)))
    try:
        for size in cuts:
            task.put([batch(rows[start : start + size], start)])
            start += size
            committed = task.pre_commit({P0: min(start, 60)}).get(P0, committed)
    except Crash:
        pass
    task.stop()  # touches files of this process only
    context = FakeContext()
    again = started(root, context, **more)
    begin = context.rewound.get(P0, committed)
    assert begin + 1 >= committed
    for first in range(begin, 60, 7):
        again.put([batch(rows[first : first + 7], first)])
    again._writers[P0]._rotate() if P0 in again._writers else None
    again.stop()
    stored = sorted(each["id"] for name in files_below(root) for each in read_file(root / name))
    assert stored == list(range(60))


def with_keys(keys: list[str | None], first: int = 0) -> RecordBatch:
    import pyarrow as pa

    rows = batch([row(first + n) for n in range(len(keys))], first)
    return rows.replace(keys=pa.array(keys, pa.string()), key_schema=Schema(SchemaType.STRING))


@pytest.mark.parametrize("format_class, extension", [("AvroFormat", ".avro"), ("JsonFormat", ".json")])
def test_keys_are_stored_beside_values_when_asked(tmp_path: Path, format_class: str, extension: str) -> None:
    task = started(tmp_path, store_kafka_keys="true", keys_format_class=format_class)
    task.put([with_keys(["a", "b", "c"])])
    task.stop()
    values, keys = files_below(tmp_path)
    assert keys == f"topics/events/partition=0/events+0+0000000000.keys{extension}"
    assert read_file(tmp_path / keys) == ["a", "b", "c"]
    assert [each["id"] for each in read_file(tmp_path / values)] == [0, 1, 2]


def test_tombstones_are_written_as_keys_in_a_folder_of_their_own(tmp_path: Path) -> None:
    """They end no file, wherever batches end; where a file ends, all end."""
    other = Schema.struct({"id": Schema(SchemaType.INT64)}, name="other")
    rows: list[Any] = [None, row(1), row(2), None, None, row(5), row(6), None, {"id": 8}, *[None] * 5]
    keyed = with_keys([f"k{n}" for n in range(len(rows))])

    def part(start: int, stop: int, schema: Schema) -> RecordBatch:
        values = batch(rows[start:stop], start, schema=schema)
        return values.replace(keys=keyed.keys.slice(start, stop - start), key_schema=keyed.key_schema)

    made = []
    by_time = {"partitioner_class": "HourlyPartitioner", "timezone": "UTC", "rotate_interval_ms": str(HOUR)}
    for cuts, more in (((0, 7, 14), {}), ((0, 1, 4, 5, 6, 7, 8, 9, 14), {}), ((0, 8, 14), by_time)):
        root = tmp_path / str(len(made))
        written = {
            "flush_size": "6",
            "behavior_on_null_values": "write",
            "store_kafka_keys": "true",
            "keys_format_class": "JsonFormat",
            "timestamp_extractor": "Record",
        }
        task = started(root, **written, **more)
        for start, stop in itertools.pairwise(cuts):
            task.put([part(start, stop, ROW if start < 7 else other)])
        task.stop()
        made.append({name.removeprefix("topics/events/"): read_file(root / name) for name in files_below(root)})
    folder = "partition=0/events+0+00000000"
    assert {
        name: [each["id"] if "keys" not in name else each for each in lines] for name, lines in made[0].items()
    } == {
        f"{folder}01.json": [1, 2, 5],
        f"{folder}01.keys.json": ["k1", "k2", "k5"],
        "tombstone/events+0+0000000000.keys.json": ["k0", "k3", "k4"],
        f"{folder}06.json": [6],
        f"{folder}06.keys.json": ["k6"],
        "tombstone/events+0+0000000007.keys.json": ["k7"],
        f"{folder}08.json": [8],
        f"{folder}08.keys.json": ["k8"],
        "tombstone/events+0+0000000009.keys.json": [f"k{n}" for n in range(9, 14)],
    }
    assert made[1] == made[0]
    hour = "year=2024/month=01/day=01/hour=00"
    assert {name.replace(hour, "partition=0"): lines for name, lines in made[2].items()} == made[0]


@pytest.mark.parametrize(
    "name, extension", [("AvroFormat", ".avro"), ("JsonFormat", ".json"), ("ParquetFormat", ".snappy.parquet")]
)
def test_headers_are_stored_as_texts_and_in_a_struct_where_the_format_wants_one(
    tmp_path: Path, name: str, extension: str
) -> None:
    headers = [
        [Header("a", 1, Schema(SchemaType.INT32)), Header("b", b"\x01")],
        [],
        [Header("a", "x", Schema(SchemaType.STRING))],
    ]
    records = [
        dataclasses.replace(record, headers=tuple(each))
        for record, each in zip(with_keys(["a", "b", "c"]).records(), headers, strict=True)
    ]
    beside = {"store.kafka.keys": "true", "store.kafka.headers": "true"}
    task = started(tmp_path, **beside, keys_format_class=name, headers_format_class=name)
    task.put([RecordBatch.from_records(records)])
    task.stop()
    folder = tmp_path / "topics/events/partition=0"
    texts = [[{"key": "a", "value": "1"}, {"key": "b", "value": "AQ=="}], [], [{"key": "a", "value": "x"}]]
    wrapped = texts if name == "AvroFormat" else [{"headers": each} for each in texts]
    assert read_file(folder / f"events+0+0000000000.headers{extension}") == wrapped
    keys = [{"key": each} for each in "abc"] if name == "ParquetFormat" else ["a", "b", "c"]
    assert read_file(folder / f"events+0+0000000000.keys{extension}") == keys


def test_a_missing_key_is_refused_when_keys_are_stored(tmp_path: Path) -> None:
    task = started(tmp_path, store_kafka_keys="true")
    with pytest.raises(DataError, match="record 1 of a batch of 'events' has no key"):
        task.put([with_keys(["a", None])])
    task.stop()


def test_a_restart_goes_on_behind_what_is_stored(tmp_path: Path) -> None:
    task = started(tmp_path)
    task.put([batch([row(n) for n in range(6)])])
    task.stop()
    context = FakeContext()
    again = started(tmp_path, context)
    assert context.rewound == {P0: 5}  # the last record stored, to be recognized
    again.put([batch([row(5)], 5)])
    again.put([batch([row(n) for n in range(5, 9)], 5)])
    again.stop()
    ids = [each["id"] for name in files_below(tmp_path) for each in read_file(tmp_path / name)]
    assert ids == list(range(9))


def test_a_topic_that_was_made_anew_is_noticed_and_not_skipped(tmp_path: Path) -> None:
    for later in (batch([row(n, EPOCH_MS + 99) for n in range(20)]), batch([row(0)])):
        task = started(tmp_path)
        task.put([batch([row(n) for n in range(6)])]) if not files_below(tmp_path) else None
        task.stop()
        again = started(tmp_path)
        with pytest.raises(
            ConnectError, match=r"events-0 was stored up to offset 5, but now holds other records there"
        ):
            again.put([later])
        again.stop()


def test_a_log_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "_logs" / "events" / "0" / "log.json"
    log.parent.mkdir(parents=True)
    for content in (b"", b"\xff", b"{}", b"[]", b'{"format": 2}', b'{"format": 1, "next_offset": "x", "files": []}'):
        log.write_bytes(content)
        with pytest.raises(ConnectError, match="is not a commit log of this sink"):
            started(tmp_path)
        assert log.read_bytes() == content


def test_all_errors_in_keys_are_reported_together(tmp_path: Path) -> None:
    config = {
        "store.url": "s3://x",
        "format.class": "OrcFormat",
        "flush.size": "0",
        "partitioner.class": "com.acme.Own",
    }
    wrong = {judged.key.name: judged.errors for judged in validate(LocalSinkConfig, config) if judged.errors}
    assert set(wrong) == {"format.class", "flush.size", "partitioner.class"}
    together = properties(tmp_path, partitioner_class="TimeBasedPartitioner", store_url="nowhere")
    wrong = {judged.key.name: judged.errors for judged in validate(LocalSinkConfig, together) if judged.errors}
    assert set(wrong) == {"timezone", "partition.duration.ms", "path.format", "store.url"}


def test_check_makes_the_folder(tmp_path: Path) -> None:
    from tidegate.kit.config import parse

    assert list(LocalSinkConnector.check(parse(LocalSinkConfig, properties(tmp_path / "new")))) == []
    assert (tmp_path / "new").is_dir()
    (tmp_path / "file").write_text("")
    (problem,) = LocalSinkConnector.check(parse(LocalSinkConfig, properties(tmp_path / "file" / "x")))
    assert problem.key == "store.url" and "cannot make folder" in problem.message


def by_city(cities: Sequence[str | None], first: int = 0) -> RecordBatch:
    return batch([{"id": n, "city": city, "at": EPOCH_MS} for n, city in enumerate(cities, first)], first)


FIELDS = {
    "partitioner_class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
    "partition_field_name": "city",
}
POISON = ["../../../../x", "../../etc", "a/../b", "a//b", "x\0y", "ä" * 128, "/".join(["n" * 200] * 20)]


@pytest.mark.parametrize("poison", POISON)
def test_a_value_that_cannot_name_a_folder_is_refused_alone(tmp_path: Path, poison: str) -> None:
    context = FakeContext()
    task = started(tmp_path, context, **FIELDS)
    task.put([by_city(["de", poison, "de", poison])])
    assert task.pre_commit({P0: 4}) == {}, "the good ones are in an open file"
    task.put([by_city(["de"], 4)])
    assert task.pre_commit({P0: 5}) == {P0: 5}
    task.stop()
    assert [record.offset for record, _ in context.errant] == [1, 3]
    assert all("cannot name a folder" in str(error) for _, error in context.errant)
    (file,) = files_below(tmp_path)
    assert file == "topics/events/city=de/events+0+0000000000.json"
    assert [each["id"] for each in read_file(tmp_path / file)] == [0, 2, 4]
    assert sorted(path.name for path in tmp_path.parent.iterdir() if path.name in ("etc", "b")) == []


def test_a_batch_of_nothing_but_poison_is_passed(tmp_path: Path) -> None:
    context = FakeContext()
    task = started(tmp_path, context, **FIELDS)
    task.put([by_city(["a/.", "a/.."])])
    task.put([by_city(["a/.", "a/.."])])  # repeated, as after a put that failed
    assert task.pre_commit({P0: 2}) == {P0: 2}
    task.stop()
    assert [record.offset for record, _ in context.errant] == [0, 1], "nothing is told twice"


def test_thousands_of_values_do_not_need_thousands_of_open_files(tmp_path: Path) -> None:
    cities = [f"c{n % 520}" for n in range(1040)]

    def files(cut: int) -> dict[str, list[int]]:
        root = tmp_path / str(cut)
        task = started(root, **FIELDS, flush_size="1000000")
        most = 0
        for first in range(0, 1040, cut):
            task.put([by_city(cities[first : first + cut], first)])
            most = max(most, len(task._writers[P0]._open))
        task.finish()
        task.stop()
        assert most <= 250
        return {name: [each["id"] for each in read_file(root / name)] for name in files_below(root)}

    whole = files(1040)
    assert sorted(n for ids in whole.values() for n in ids) == list(range(1040))
    assert files(300) == whole, "where a file ends is a matter of the records"

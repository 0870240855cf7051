"""CSV and TSV files of the object sinks, read by DuckDB and by Python's csv."""

from __future__ import annotations

import csv
import gzip
import io
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connect.api import DataError, Schema, SchemaType, TopicPartition
from connect.bench import Bench
from connectors.local.config import LocalSinkConfig
from connectors.local.sink import LocalSinkConnector
from connectors.objects.formats import FormatOptions, format_of
from tests.support.objects import EPOCH_MS, batch, files_below, row
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

P0 = TopicPartition("events", 0)
TEXT = Schema(SchemaType.STRING, optional=True)
KINDS = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "flag": Schema(SchemaType.BOOLEAN, optional=True),
        "ratio": Schema(SchemaType.FLOAT64, optional=True),
        "price": Schema.decimal(2, optional=True),
        "day": Schema.date(optional=True),
        "hour": Schema.time(optional=True),
        "at": Schema.timestamp(optional=True),
        "blob": Schema(SchemaType.BYTES, optional=True),
        "text, quoted": TEXT,
    }
)
TEXTS = [
    "plain",
    "",
    None,
    "a,b",
    'say "so"',
    "two\nlines",
    "cr\r",
    " blanks ",
    "NULL",
    "\\N",
    "ä\U0001f600",
    ";\t|",
    "'",
    "#",
]


def kinds(n: int, text: str | None) -> dict[str, Any]:
    if text is None:
        return dict.fromkeys(KINDS.field_names) | {"id": n}
    return {
        "id": n,
        "flag": n % 2 == 0,
        "ratio": n / 8,
        "price": Decimal(n) / 4,
        "day": date(2024, 1, 1 + n),
        "hour": time(1, 2, n),
        "at": datetime(2024, 1, 1, 0, 0, n, 5000, tzinfo=UTC),
        "blob": bytes([n, 255]),
        "text, quoted": text,
    }


ROWS = [kinds(n, text) for n, text in enumerate(TEXTS)]


def sink(folder: Path, **more: str) -> Bench:
    properties = {"topics": "events", "store.url": f"file://{folder}", "format.class": "CsvFormat", "flush.size": "3"}
    return Bench(LocalSinkConnector, properties | {name.replace("_", "."): value for name, value in more.items()})


def written(folder: Path, rows: list[Any], schema: Schema | None = KINDS, **more: str) -> Path:
    with sink(folder, flush_size=str(len(rows)), **more).sink(P0) as running:
        running.task.put([batch(rows, schema=schema, times=[EPOCH_MS] * len(rows))])
    (name,) = files_below(folder)
    return folder / name


@pytest.mark.parametrize(
    ("more", "reading"),
    [
        ({}, "delim=','"),
        ({"format_csv_null": "NULL", "format_csv_delimiter": ";"}, "delim=';', nullstr='NULL'"),
        ({"format_csv_null": "\\N", "format_class": "io.confluent.connect.sftp.sink.format.tsv.TsvFormat"},
         "delim='\t', nullstr='\\N'"),
        ({"format_csv_header": "false"}, "delim=',', header=false"),
    ],
)  # fmt: skip
def test_every_kind_of_value_is_read_by_others(tmp_path: Path, more: dict[str, str], reading: str) -> None:
    import duckdb

    path = written(tmp_path, ROWS, **more)
    assert path.suffix == (".tsv" if "\t" in reading else ".csv")
    types = dict.fromkeys(KINDS.field_names, "VARCHAR") | {
        "id": "BIGINT", "flag": "BOOLEAN", "ratio": "DOUBLE", "price": "DECIMAL(20,2)", "day": "DATE", "hour": "TIME",
        "at": "TIMESTAMP",
    }  # fmt: skip
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    options = (
        f"hive_partitioning=false, quote='\"', escape='\"', allow_quoted_nulls=false, columns={{{columns}}}, {reading}"
    )
    options += "" if "header" in reading else ", header=true"
    found_rows = duckdb.sql(
        f"SELECT * REPLACE (from_base64(blob) AS blob) FROM read_csv('{path}', {options}) ORDER BY id"
    )
    expected = [tuple({**each, "at": each["at"] and each["at"].replace(tzinfo=None)}.values()) for each in ROWS]
    assert found_rows.fetchall() == expected


def test_files_are_quoted_where_they_have_to_be(tmp_path: Path) -> None:
    schema = Schema.struct({"id": Schema(SchemaType.INT64), "text": TEXT})
    rows = [{"id": n, "text": text} for n, text in enumerate(["a", "", None, 'b"c', " d"])]
    path = written(tmp_path, rows, schema, format_csv_null="")
    assert path.read_bytes() == b'id,text\n0,a\n1,""\n2,\n3,"b""c"\n4," d"\n'


def test_nested_values_are_refused_or_written_as_json(tmp_path: Path) -> None:
    schema = Schema.struct({"id": Schema(SchemaType.INT64), "tags": Schema.array(TEXT, optional=True)})
    rows = [{"id": 1, "tags": ["a", 'b"']}, {"id": 2, "tags": None}]
    with pytest.raises(
        DataError, match=r"field 'tags' is array, which is no cell of CSV: set format\.csv\.nested=json"
    ):
        written(tmp_path / "a", rows, schema)
    text = written(tmp_path / "b", rows, schema, format_csv_nested="json").read_text()
    assert [*csv.DictReader(io.StringIO(text))] == [{"id": "1", "tags": '["a","b\\""]'}, {"id": "2", "tags": ""}]


def test_records_that_have_no_columns_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="use a converter with schemas"):
        written(tmp_path / "a", [{"id": 1}], None)
    single = Schema.struct({"only": TEXT})
    with pytest.raises(DataError, match=r"a row of a null alone would be an empty line.*set format\.csv\.null"):
        written(tmp_path / "b", [{"only": "x"}, {"only": None}], single)
    assert (
        written(tmp_path / "c", [{"only": ""}, {"only": None}], single, format_csv_null="-").read_text()
        == 'only\n""\n-\n'
    )
    with pytest.raises(DataError, match="cannot name a column"):
        written(tmp_path / "d", [{"a\nb": "x"}], Schema.struct({"a\nb": TEXT}))


@pytest.mark.parametrize("value", ['"', "", ",,", "\n", "é"])
def test_a_delimiter_is_one_character(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"format\.csv\.delimiter"):
        parse(LocalSinkConfig, sink(tmp_path).properties | {"format.csv.delimiter": value})


@pytest.mark.parametrize("format_class", ["CsvFormat", "TsvFormat"])
def test_what_was_written_is_read_back_for_a_comparison(tmp_path: Path, format_class: str) -> None:
    made = sink(tmp_path, format_class=format_class, flush_size="4")
    rows = batch(ROWS[:12], schema=KINDS, times=[EPOCH_MS] * 12)
    with made.sink(P0) as running:
        running.task.put([rows])

    def compared() -> tuple[list[Any], list[Any]]:
        with closing(made.unstarted().contents({})) as contents:
            contents.positions([P0])
            expected = [each.values() for part in (contents.expected(rows), contents.rest()) for each in part]
            return expected, [each.values() for each in contents.stored()]

    expected, stored = compared()
    assert expected == stored and [text for each in stored for text in each["text, quoted"]] == TEXTS[:12]
    first = tmp_path / files_below(tmp_path)[0]
    first.write_text(first.read_text().replace("plain", "other"))
    expected, stored = compared()
    assert expected != stored


def test_a_long_file_is_read_in_blocks() -> None:
    made = format_of("CsvFormat", FormatOptions(compression="gzip"))
    assert made.extension == ".csv.gz"
    text = "id,text\n" + "".join(f'{n},"line {n}\n{"x" * 50}"\n' for n in range(300_000))
    chunks = [*made.read(io.BytesIO(text.encode()))]
    assert len(chunks) > 1 and sum(len(chunk.values) for chunk in chunks) == 300_000
    assert chunks[-1].values[-1].as_py() == {"id": "299999", "text": f"line 299999\n{'x' * 50}"}
    with pytest.raises(DataError, match="not CSV that can be read"):
        [*made.read(io.BytesIO(b"id,text\n1,2\n3\n"))]
    assert [*made.read(io.BytesIO(b""))] == []


@pytest.mark.servers
def test_compressed_files_are_compared_too(s3_server: Any) -> None:
    from connectors.s3.sink import S3SinkConnector
    from tests.support.buckets import bucket_on

    with bucket_on(s3_server) as bucket:
        for format_class in ("CsvFormat", "JsonFormat"):
            properties = {
                "topics": "events",
                "flush.size": "2",
                "s3.compression.type": "gzip",
                "topics.dir": format_class,
            }
            made = Bench(S3SinkConnector, {**bucket.access, **properties, "format.class": format_class})
            rows = batch([row(n) for n in range(4)])
            with made.sink(P0) as running:
                running.task.put([rows])
            with closing(made.unstarted().contents({})) as contents:
                contents.positions([P0])
                expected = [each.columns for part in (contents.expected(rows), contents.rest()) for each in part]
                assert [each.columns for each in contents.stored()] == expected
        name = "CsvFormat/events/partition=0/events+0+0000000000.csv.gz"
        assert gzip.decompress(bucket.objects()[name]).startswith(b"id,city,at\n0,de,2024-01-01T00:00:00.000Z\n")

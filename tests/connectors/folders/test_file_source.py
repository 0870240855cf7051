"""The file source over a folder of this disk, through its tasks."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from connect.api import ConnectError, RecordBatch, Schema, SchemaType
from connect.bench import Bench, RunningTask
from connect.testing import SourceSuite
from connectors.folders.source import (
    FileSourceConnector,
    SpoolDirCsvConnector,
    SpoolDirJsonConnector,
    SpoolDirLinesConnector,
)
from tidegate.kit.config import validate

USER = {
    "name": "com.example.User",
    "type": "STRUCT",
    "isOptional": False,
    "fieldSchemas": {
        "id": {"type": "INT64", "isOptional": False},
        "name": {"type": "STRING", "isOptional": True},
        "born": {"name": "org.apache.kafka.connect.data.Date", "type": "INT32", "version": 1, "isOptional": True},
        "seen": {"name": "org.apache.kafka.connect.data.Timestamp", "type": "INT64", "version": 1, "isOptional": True},
        "money": {
            "name": "org.apache.kafka.connect.data.Decimal",
            "type": "BYTES",
            "version": 1,
            "isOptional": True,
            "parameters": {"scale": "2"},
        },
    },
}
KEY = {"name": "com.example.Key", "type": "STRUCT", "fieldSchemas": {"id": {"type": "INT64", "isOptional": False}}}


def properties_of(folder: Path, pattern: str = ".*", **more: str) -> dict[str, str]:
    made = {
        "topic": "rows",
        "input.path": str(folder),
        "input.file.pattern": pattern,
        "file.minimum.age.ms": "0",
        "empty.poll.wait.ms": "1",
    }
    return made | {name.replace("_", "."): value for name, value in more.items()}


def bench(folder: Path, pattern: str = ".*", connector: Any = FileSourceConnector, **more: str) -> Bench:
    return Bench(connector, properties_of(folder, pattern, **more))


def polled(running: RunningTask) -> list[RecordBatch]:
    """All that there is: several polls without rows follow one another at its end."""
    batches: list[RecordBatch] = []
    empty = 0
    while empty < 3:
        made = running.task.poll()
        batches += made
        empty = 0 if made else empty + 1
    return batches


def committed(made: Bench, running: RunningTask, batches: list[RecordBatch]) -> None:
    """The call of the runtime once the log has all rows."""
    made.commit(batches)
    positions = [(b.source_partition, b.source_offset) for b in batches if b.source_partition and b.source_offset]
    running.task.committed(positions)


def everything(made: Bench) -> list[RecordBatch]:
    with made.task() as running:
        batches = polled(running)
        committed(made, running, batches)
        return batches


def values(batches: list[RecordBatch], topic: str = "rows") -> list[Any]:
    return [value for batch in batches if batch.topic == topic for value in batch.values.to_pylist()]


class TestSuiteOfCsv(SourceSuite):
    connector_class = FileSourceConnector

    @pytest.fixture
    def expected_rows(self) -> int:
        return 30

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        for n in range(3):
            text = "".join(f'{n}{m},"text ""{m}"""\n' for m in range(10))
            (tmp_path / f"{n}.csv").write_text("id,text\n" + text)
        return properties_of(tmp_path, schema_generation_types="strings", batch_size="4")


def test_a_spooldir_configuration_runs_and_moves_its_files(tmp_path: Path) -> None:
    for name in ("in", "done", "error"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "a.csv").write_text(
        "ID,Name,born,seen,money,unused\n"
        '1,"O\\"Neill, ""Jo""",1990-05-01,2020-02-03T04:05:06,12.50,x\n'
        "\n"
        "2,,,2020-02-03 04:05:06,,\n"
    )
    made = bench(
        tmp_path / "in",
        r"^.*\.csv$",
        SpoolDirCsvConnector,
        finished_path=str(tmp_path / "done"),
        error_path=str(tmp_path / "error"),
        csv_first_row_as_header="true",
        key_schema=json.dumps(KEY),
        value_schema=json.dumps(USER),
    )
    with made.task() as running:
        batches = polled(running)
        assert (tmp_path / "in" / "a.csv").exists(), "no file goes before its rows are in the log"
        committed(made, running, batches)
    seen = datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)
    first, second = values(batches)
    assert (first["id"], first["name"], first["born"], first["seen"]) == (1, 'O"Neill, "Jo"', date(1990, 5, 1), seen)
    assert str(first["money"]) == "12.50"
    assert second == {"id": 2, "name": "", "born": None, "seen": seen, "money": None}
    (batch,) = batches
    assert batch.keys is not None and batch.keys.to_pylist() == [{"id": 1}, {"id": 2}]
    assert batch.value_schema is not None and batch.value_schema.name == "com.example.User"
    assert batch.source_partition == {"fileName": "a.csv"} and batch.source_offset["offset"] == 2
    headers = {header.key: header.value for header in list(batch.records())[1].headers}
    assert headers["file.name"] == "a.csv" and headers["file.offset"] == "1"
    assert [path.name for path in (tmp_path / "done").iterdir()] == ["a.csv"] and not list((tmp_path / "in").iterdir())
    # Another file of that name is another file.
    (tmp_path / "in" / "a.csv").write_text("id,name\n3,c\n")
    assert [row["id"] for row in values(everything(made))] == [3]


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=("Cs",)), max_size=8)
TABLE = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=20)
)


@settings(max_examples=60, deadline=None)
@given(
    rows=TABLE,
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ends=st.sampled_from(["\n", "\r\n"]),
    separator=st.sampled_from(",;\t|"),
)
def test_cells_that_python_writes_are_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], quoting: int, ends: str, separator: str
) -> None:
    """Without carriage returns in cells: Python writes them without quotes, and Arrow takes them for line ends."""
    folder = tmp_path_factory.mktemp("cells")
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=ends, delimiter=separator)
    header = [f"c{n}" for n in range(len(rows[0]))]
    writer.writerows([header, *rows])
    (folder / "a.csv").write_bytes(text.getvalue().encode())
    made = bench(
        folder,
        csv_separator_char=str(ord(separator)),
        csv_null_field_indicator="NEITHER",
        schema_generation_types="strings",
        batch_size="3",
    )
    # A row of one empty line is none; Python writes rows of several empty cells with separators.
    assert [list(row.values()) for row in values(everything(made))] == rows


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-(10**6), 10**6),
            st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=("Cs",)), max_size=6),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_fixed_widths_are_cut_as_python_slices(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("widths")
    lines = [f"{number:>8}{text:<6}" for number, text in rows]
    (folder / "a.txt").write_text("\n".join(lines), newline="")
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": "string"}],
    }
    made = bench(folder, input_format="fixed", fixed_fields="number:8,text:6", value_schema=json.dumps(schema))
    expected = [{"number": int(line[:8]), "text": line[8:14].strip(" ")} for line in lines]
    assert values(everything(made)) == expected


HOSTILE = st.lists(
    st.sampled_from(
        (b"\n", b"\r\n", b"\r", b",", b'"', b"\\", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"id", b"1", b"99999999999999999999999", b"1e999",
         b"NaN", b'{"id": 1}', b'{"id": "x"}', b'{"id": [1, "x", {}]}', b'{"id": {"a": 1}}', b"{}", b"[]", b"null", b"{",
         b"[" * 3000 + b"]" * 3000, b'{"id":' * 900 + b"1" + b"}" * 900, b'{"id": "\\ud800"}', b"PAR1", b"Obj\1", b"<r>", b"<a>", b"</a>", b"</r>", b"<!DOCTYPE r [", b"&#0;", b"x" * 70_000)
    ) | st.binary(max_size=12),
    max_size=12,
).map(b"".join)  # fmt: skip


# Arrow can't hand over a row of too few cells that is no text: it prints why, and the file is refused.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@settings(max_examples=60, deadline=None)
@given(content=HOSTILE)
@pytest.mark.parametrize(
    "format_", ["csv", "json", "json.schemaless", "regex", "fixed", "lines", "parquet", "avro", "xml"]
)
def test_no_file_stops_those_after_it(tmp_path_factory: pytest.TempPathFactory, format_: str, content: bytes) -> None:
    folder, wrong = tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("wrong")
    for name in ("a", "b"):
        (folder / name).write_bytes(content)
    more = {"json_schemaless": "true"} if format_ == "json.schemaless" else {}
    made = bench(
        folder,
        input_format=format_.partition(".")[0],
        line_regex="(?P<id>.+)",
        fixed_fields="id:3,name:4",
        errors_tolerance="all",
        halt_on_error="false",
        error_path=str(wrong),
        **more,
    )
    ended = [
        batch.source_partition["fileName"]
        for batch in everything(made)
        if batch.source_offset is not None and (batch.source_offset.get("done") or batch.source_offset.get("failed"))
    ]
    assert ended == ["a", "b"]


def test_bad_rows_go_to_the_dead_letters_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,name\n1,"two\nlines"\n\nx,b\n3\n4,\xff\xfe\n5,e\n6,f,g\n')
    schema = (
        '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"]}]}'
    )
    options = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "bad", "value.schema": schema}
    for size in ("1", "100"):
        with bench(tmp_path, **options, batch_size=size).task() as running:
            batches = polled(running)
            assert running.context.skipped == 4
        assert [row["id"] for row in values(batches)] == [1, 5]
        letters = values(batches, "bad")
        assert [(letter["line"], letter["row"]) for letter in letters] == [(5, 1), (6, 2), (7, 3), (9, 5)]
        assert {letter["file"] for letter in letters} == {str(path)}
        assert [letter["error"] for letter in letters] == [
            "id: 'x' is no int64",
            "it has 1 columns, and 2 are expected",
            "name: not text in the charset of the file",
            "it has 3 columns, and 2 are expected",
        ]
        assert letters[0]["text"] == "x,b" and batches[-1].source_offset["done"]


def test_a_bad_row_fails_the_task_behind_the_rows_before_it_and_a_repaired_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,name\n" + "".join(f"{n},n\n" for n in range(5)) + "x,n\n6,n\n")
    schema = '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"}]}'
    made = bench(tmp_path, value_schema=schema, batch_size="2")
    with made.task() as running:
        batches = running.task.poll()
        made.commit(batches)
        assert [row["id"] for row in values(batches)] == [0, 1, 2, 3, 4]
        with pytest.raises(ConnectError, match=r"a\.csv cannot be read: line 7: id: 'x' is no int64: 'x,n'"):
            running.task.poll()
    path.write_text(path.read_text().replace("x", "5"))
    assert [row["id"] for row in values(everything(made))] == [5, 6]


def test_a_file_that_cannot_be_read_goes_to_the_error_path_once_its_rows_are_safe(tmp_path: Path) -> None:
    for name in ("in", "error"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "a").write_text('{"n": 1}\n{"n": 2}\nnonsense\n')
    (tmp_path / "in" / "b").write_text('{"n": 3}\n')
    made = bench(tmp_path / "in", input_format="json", halt_on_error="false", error_path=str(tmp_path / "error"))
    with made.task() as running:
        batches = polled(running)
        assert [row["n"] for row in values(batches)] == [1, 2, 3]
        assert not list((tmp_path / "error").iterdir())
        committed(made, running, batches)
    assert [path.name for path in (tmp_path / "error").iterdir()] == ["a"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["b"]


def test_a_schema_is_inferred_once_and_kept(tmp_path: Path) -> None:
    text = "id,code,price,on,day,at,name\n1,007,1.5,true,2020-01-02,2020-01-02T03:04:05Z,a\n2,010,2,false,,,\n"
    (tmp_path / "a.csv").write_text(text)
    made = bench(tmp_path, errors_tolerance="all")
    batches = everything(made)
    schema = next(batch.value_schema for batch in batches if batch.value_schema is not None)
    kinds = {
        member.name: (member.schema.name or member.schema.type.value).rpartition(".")[2] for member in schema.fields
    }
    assert kinds == {
        "id": "int64", "code": "string", "price": "float64", "on": "boolean", "day": "Date", "at": "Timestamp", "name": "string",
    }  # fmt: skip
    assert values(batches)[1] == {
        "id": 2,
        "code": "010",
        "price": 2.0,
        "on": False,
        "day": None,
        "at": None,
        "name": None,
    }
    # Another task has the stored schema, although the first file has gone and the next one would give another.
    (tmp_path / "a.csv").unlink()
    (tmp_path / "b.csv").write_text("name,id\n5,3\n6,x\n")
    batches = everything(made)
    assert [(row["id"], row["name"]) for row in values(batches)] == [(3, "5")]
    assert {batch.value_schema for batch in batches if len(batch)} == {schema}


@pytest.mark.parametrize(
    "text, ids, letters",
    [
        ('id,country\n8,"NO\n9,DE\n', [], [(2, 0, '8,"NO\n9,DE\n')]),
        ('id,country\n7,SE\n\n8,"NO', [7], [(4, 1, '8,"NO')]),
        ('id,country\nx,SE\n7,SE\n8,"', [7], [(2, 0, "x,SE"), (4, 2, '8,"')]),
        ('id,country\n7,SE\n"8,NO\n9,DE\n', [7], [(3, 1, '"8,NO\n9,DE\n')]),
        ('id,country\n8,"N""O', [], [(2, 0, '8,"N"O')]),
        # These are closed.
        ('id,country\n7,"SE"\n8,5" pipe\n', [7, 8], []),
        ('id,country\n7,"SE\n"', [7], []),
        ('id,country\n7,""', [7], []),
        ("id,country\n7,SE\r\n8,NO\r\n", [7, 8], []),
        ("id,country", [], []),
        ("id,country\n7,SE\\", [7], []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16"])
def test_a_quote_that_is_not_closed_makes_a_bad_row(
    tmp_path: Path, text: str, ids: list[int], letters: list[Any], charset: str
) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode(charset))
    schema = '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"country","type":["null","string"]}]}'
    options = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "bad", "value.schema": schema}
    batches = everything(bench(tmp_path, **options, csv_escape_char="92", file_charset=charset))
    assert [row["id"] for row in values(batches)] == ids
    told = values(batches, "bad")
    assert [(letter["line"], letter["row"], letter["text"]) for letter in told] == letters
    assert all("its quote is not closed" in letter["error"] for letter in told[-1:])
    assert batches[-1].source_offset["done"] and not batches[-1].source_offset.get("failed")


def test_a_quote_that_is_not_closed_is_found_in_one_column_and_in_a_header_and_over_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id\n1\n"2\n3\n')
    made = bench(tmp_path)
    with pytest.raises(
        ConnectError, match=r"line 3: the file ends inside a quoted cell: its quote is not closed: '\"2"
    ):
        everything(made)
    (tmp_path / "a.csv").write_text("id\n1\n2\n3\n")
    assert values(everything(made)) == [{"id": 1}, {"id": 2}, {"id": 3}]
    (tmp_path / "b.csv").write_text('"id\n1\n2\n')
    with pytest.raises(ConnectError, match=r"b\.csv cannot be read: line 1: the file ends inside .*, in its header"):
        everything(made)
    (tmp_path / "b.csv").write_text('id\n4\n"5\n' + "6\n" * 2**22)
    with pytest.raises(ConnectError, match=r"a row from line 3 on is longer than 4 MiB: is a quote not closed\?"):
        everything(made)


def test_a_header_without_a_column_of_the_schema_makes_no_rows(tmp_path: Path) -> None:
    for name in ("in", "done", "error"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,country\n1,NO\n")
    more = {"cleanup_policy": "MOVE", "finished_path": str(tmp_path / "done"), "error_path": str(tmp_path / "error")}
    made = bench(tmp_path / "in", **more)
    assert values(everything(made)) == [{"id": 1, "country": "NO"}]
    (tmp_path / "in" / "k.csv").write_text("id;country\n1;NO\n2;DE\n")
    with pytest.raises(ConnectError) as caught:
        everything(made)
    assert str(caught.value).endswith(
        "k.csv cannot be read: its header has none of the schema's columns: it has 'id;country', and the schema of the first "
        "file that was read has 'id', 'country'; csv.separator.char is ',', and ';' (59) would be right for this file"
    )
    (tmp_path / "in" / "k.csv").write_text("1,NO\n2,DE\n")
    with pytest.raises(ConnectError, match="without a header needs csv.first.row.as.header=false"):
        everything(made)
    passed_over = bench(tmp_path / "in", halt_on_error="false", value_schema=json.dumps(USER), **more)
    assert values(everything(passed_over)) == []
    assert [[path.name for path in (tmp_path / name).iterdir()] for name in ("in", "error")] == [[], ["k.csv"]]


def test_a_first_file_with_another_delimiter_does_not_decide_the_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;country\n1;NO\n")
    with pytest.raises(ConnectError) as caught:
        everything(bench(tmp_path))
    assert str(caught.value).endswith(
        "a.csv cannot be read: its header is the one column 'id;country': csv.separator.char is ',', and ';' (59) would give it 2; "
        "if that is the column's name, give value.schema"
    )
    assert values(everything(bench(tmp_path, csv_separator_char="59"))) == [{"id": 1, "country": "NO"}]
    (tmp_path / "a.csv").write_text("sum [a;b]\n1\n")
    assert values(everything(bench(tmp_path))) == [{"sum [a;b]": 1}]


def test_columns_that_the_schema_does_not_have_are_named_once_for_each_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("id,more,other\n" + "2,x,y\n" * 3)
    with capture_logs() as logs:
        assert values(everything(bench(tmp_path, batch_size="1"))) == [{"id": 1}, *[{"id": 2}] * 3]
    (told,) = (each for each in logs if each["event"].startswith("columns left out"))
    assert (told["log_level"], told["file"], told["columns"]) == ("warning", str(tmp_path / "b.csv"), "more, other")


def test_json_lines_take_types_and_tell_what_does_not_fit(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "name": "a", "born": "1990-05-01", "seen": "2020-02-03T04:05:06", "money": "1.25"},
        {"id": "1"},
        {"name": "no id"},
        [1],
        {"id": 2, "money": 3.5, "more": {}},
    ]
    (tmp_path / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{")
    made = bench(
        tmp_path, ".*", SpoolDirJsonConnector, value_schema=json.dumps(USER), cleanup_policy="NONE",
        **{"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "bad"},
    )  # fmt: skip
    batches = everything(made)
    assert [(row["id"], row["born"], str(row["money"])) for row in values(batches)] == [
        (1, date(1990, 5, 1), "1.25"),
        (2, None, "3.50"),
    ]
    assert [(letter["line"], letter["error"].partition(":")[0]) for letter in values(batches, "bad")] == [
        (2, "id"),
        (3, "id is missing, and the schema does not say that it may be"),
        (4, "it should be a JSON object, not list"),
        (6, "it is not JSON"),
    ]


def test_lines_patterns_and_packed_files(tmp_path: Path) -> None:
    text = "2020-01-01 INFO all is well\r\n\r\nno date\r\n2020-01-02 WARN caf\u00e9\r\n"
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    lines = everything(bench(tmp_path, ".*", SpoolDirLinesConnector, file_charset="ISO-8859-1", cleanup_policy="NONE"))
    assert values(lines) == ["2020-01-01 INFO all is well", "no date", "2020-01-02 WARN café"]
    made = bench(
        tmp_path, input_format="regex", file_charset="ISO-8859-1", errors_tolerance="all",
        line_regex=r"^(?<day>\d{4}-\d\d-\d\d) (?<level>\w+) (?<text>.*)",
    )  # fmt: skip
    assert values(everything(made)) == [
        {"day": date(2020, 1, 1), "level": "INFO", "text": "all is well"},
        {"day": date(2020, 1, 2), "level": "WARN", "text": "café"},
    ]


def test_parquet_and_avro_bring_their_schema(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": [1, 2, 3], "at": pa.array([1, 2, 3], pa.timestamp("ms", "UTC"))}), tmp_path / "a.parquet"
    )
    made = bench(
        tmp_path, r".*\.parquet", input_format="parquet", batch_size="2", schema_generation_key_fields="id",
        timestamp_mode="FIELD", timestamp_field="at",
    )  # fmt: skip
    batches = everything(made)
    assert [row["id"] for row in values(batches)] == [1, 2, 3]
    assert batches[0].keys is not None and batches[0].keys.to_pylist() == [{"id": 1}, {"id": 2}]
    assert batches[1].timestamps_ms is not None and batches[1].timestamps_ms.to_pylist() == [3]
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    with (tmp_path / "b.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"id": n} for n in range(3)])
    batches = everything(bench(tmp_path, r".*\.avro", input_format="avro"))
    assert [row["id"] for row in values(batches)] == [0, 1, 2]
    assert batches[0].value_schema == Schema.struct({"id": Schema(SchemaType.INT64)}, name="R")
    (tmp_path / "c.avro").write_text("nonsense")
    with pytest.raises(ConnectError, match=r"c\.avro cannot be read: not an Avro container file"):
        everything(bench(tmp_path, r"c\.avro", input_format="avro"))


def test_young_files_and_files_that_grow_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    made = bench(tmp_path, input_format="lines", file_minimum_age_ms="3600000")
    assert everything(made) == []
    os.utime(path, (0, 0))
    assert values(everything(made)) == ["one", "two"]
    # Its writer adds to it while it is read: the last batch waits until the file rests.
    path = tmp_path / "b.txt"
    path.write_text("one\ntw")
    made = bench(tmp_path, r"b\.txt", input_format="lines", batch_size="1")
    with made.task() as running:
        first = running.task._next()
        with path.open("a") as file:
            file.write("o\nthree\n")
        assert values([first, *polled(running)]) == ["one", "two", "three"]


def test_files_are_read_in_order_and_old_ones_are_not_listed_again(tmp_path: Path) -> None:
    for age, name in enumerate(("c", "a", "b")):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (age, age))
    assert values(everything(bench(tmp_path, input_format="lines", files_sort_attributes="LastModifiedAsc"))) == [
        "c",
        "a",
        "b",
    ]
    assert values(everything(bench(tmp_path, input_format="lines", files_sort_attributes="NameDesc"))) == [
        "c",
        "b",
        "a",
    ]
    made = bench(tmp_path, input_format="lines", files_names_ascend="true")
    batches = everything(made)
    assert values(batches) == ["a", "b", "c"]
    assert {str(batch.source_partition) for batch in batches} == {str({"inputPath": str(tmp_path)})}
    (tmp_path / "aa").write_text("passed over")
    (tmp_path / "d").write_text("d")
    assert values(everything(made)) == ["d"]


def test_tasks_share_files_and_walk_folders(tmp_path: Path) -> None:
    names = [f"{folder}/{n}.txt" for folder in ("x", "y/z") for n in range(6)]
    for name in names:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(name)
    (tmp_path / "done").mkdir()
    more = {"cleanup.policy": "MOVE", "finished.path": str(tmp_path / "done")}
    made = bench(tmp_path / "in", input_format="lines", input_path_walk_recursively="true", **more)
    shares = []
    for number, properties in enumerate(made.plan(3)):
        with made.task(properties, number) as running:
            batches = polled(running)
            committed(made, running, batches)
            shares.append(values(batches))
    assert sorted(name for share in shares for name in share) == names and all(shares)
    assert sorted(str(path.relative_to(tmp_path / "done")) for path in (tmp_path / "done").rglob("*.txt")) == names
    assert not list((tmp_path / "in").iterdir()), "folders that became empty go too"


@pytest.mark.parametrize(
    "wrong, key, problem",
    [
        ({"cleanup.policy": "MOVE"}, "finished.path", "needs finished.path"),
        ({"input.format": "regex", "line.regex": "(\\d+)"}, "line.regex", "named groups"),
        ({"input.format": "fixed", "fixed.fields": "id"}, "fixed.fields", "'id' should be name:width"),
        ({"schema.generation.enabled": "false"}, "value.schema", "give value.schema"),
        ({"value.schema": "{"}, "value.schema", "it is not JSON"),
        ({"value.schema": '{"type": "INT64"}'}, "value.schema", "Unknown schema type: INT64"),
        ({"value.schema": json.dumps(USER), "schema.generation.key.fields": "id,nom"}, "schema.generation.key.fields",
         "schema.generation.key.fields has nom; the fields of value.schema are id, name, born, seen, money"),
        ({"value.schema": json.dumps(KEY), "key.schema": json.dumps(USER)}, "key.schema", "key.schema has name, born"),
        ({"key.schema": "{"}, "key.schema", "it is not JSON"),
        ({"input.format": "lines", "schema.generation.key.fields": "id"}, "schema.generation.key.fields", "no fields"),
        ({"csv.separator.char": "ab"}, "csv.separator.char", "should be a character"),
        ({"parser.timestamp.date.formats": "QQ"}, "parser.timestamp.date.formats", "'QQ' in 'QQ' is not supported"),
        ({"error.path": "s3://bucket/x"}, "error.path", "in the same store"),
        ({"files.names.ascend": "true", "cleanup.policy": "DELETE"}, "files.names.ascend", "files stay"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_key(tmp_path: Path, wrong: dict[str, str], key: str, problem: str) -> None:
    judged = validate(FileSourceConnector.config_class, properties_of(tmp_path) | wrong)
    errors = {each.key.name: each.errors for each in judged if each.errors}
    assert list(errors) == [key] and problem in errors[key][0]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    config = FileSourceConnector.config_class
    from tidegate.kit.config import parse

    problems = list(FileSourceConnector.check(parse(config, properties_of(tmp_path / "none"))))
    assert [(each.key, each.message) for each in problems] == [
        ("input.path", f"there is no folder {tmp_path / 'none'}")
    ]
    problems = list(FileSourceConnector.check(parse(config, properties_of(tmp_path) | {"input.path": "ftp://x"})))
    assert "input.path is 'ftp:" in problems[0].message

"""The file stream connectors, through their tasks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from connect.api import ConnectError, Record, RecordBatch, Schema, SchemaType
from connectors.files.config import FileStreamSinkConfig, FileStreamSourceConfig
from connectors.files.sink import FileStreamSinkConnector
from connectors.files.source import FileStreamSourceConnector
from tests.support.connect import FakeContext, drain, rows, sink_task, source_task


def started(path: Path, context: FakeContext | None = None, **more: str) -> Any:
    return source_task(FileStreamSourceConnector, {"file": str(path), "topic": "lines", **more}, context)


def test_a_growing_file_is_followed_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthr")
    task = started(path)
    (batch,) = task.poll()
    assert batch.topic == "lines" and batch.value_schema == Schema(SchemaType.STRING)
    assert batch.source_partition == {"filename": str(path)} and batch.source_offset == {"position": 8}
    assert rows([batch]) == ["one", "two"]
    with path.open("a") as file:
        file.write("ee\nfour\n")
    assert rows(drain(task)) == ["three", "four"]


def test_a_restart_goes_on_behind_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes("één\r\ntwee\r\n".encode() + b"\xff\xfe\n")
    task = started(path, **{"batch.size": "1"})
    batches = drain(task)
    assert rows(batches) == ["één", "twee", "��"]
    for read, batch in enumerate(batches):
        context = FakeContext()
        context.commit([batch])
        assert rows(drain(started(path, context))) == rows(batches)[read + 1 :]


def test_a_line_longer_than_a_block_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * 9_000_000 + "\nshort\n")
    assert [len(line) for line in rows(drain(started(path)))] == [9_000_000, 5]


def test_a_file_may_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    task = started(Path("log"))
    with capture_logs() as logs:
        assert task.poll() == [] == task.poll()
    assert [entry["file"] for entry in logs] == [str(tmp_path / "log")]
    (tmp_path / "log").write_text("here\n")
    assert rows(task.poll()) == ["here"]


def test_a_file_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    task = started(path)
    task.poll()
    path.write_text("1\n")
    with pytest.raises(ConnectError, match="has 2 bytes, but 8 of it were read"):
        task.poll()


def test_without_a_file_it_is_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        task = source_task(FileStreamSourceConnector, {"topic": "lines"})
        assert task.poll() == []
        os.write(writing, b"one\ntw")
        (batch,) = task.poll()
        assert rows([batch]) == ["one"] and batch.source_partition is None and batch.source_offset is None
        os.write(writing, b"o\n")
        assert rows(task.poll()) == ["two"]
        os.close(writing)
        assert task.poll() == []
        task.stop()


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=f"cannot read file {tmp_path}"):
        started(tmp_path).poll()


def test_python_calls_do_not_grow_with_lines(tmp_path: Path) -> None:
    def calls(count: int) -> int:
        path = tmp_path / f"log{count}"
        path.write_text("line\n" * count)
        task = started(path, **{"batch.size": "100000"})
        made = 0

        def count_call(frame: Any, event: str, argument: Any) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            assert sum(map(len, task.poll())) == count
        finally:
            sys.setprofile(None)
        return made

    calls(1)
    assert calls(50_000) <= calls(10) * 1.1


def test_the_sink_appends_values_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before\n")
    task = sink_task(FileStreamSinkConnector, {"file": str(path)})
    schema = Schema.struct({"id": Schema(SchemaType.INT32), "name": Schema(SchemaType.STRING, optional=True)})
    text, number = Schema(SchemaType.STRING), Schema(SchemaType.INT64)
    records = [
        [Record("t", "a", text), Record("t", None, text)],
        [Record("t", 7, number)],
        [Record("t", {"id": 1, "name": "x"}, schema), Record("t", {"id": 2, "name": None}, schema)],
        [Record("t", {"free": True})],
    ]
    task.put([RecordBatch.from_records(group) for group in records])
    task.flush()
    assert path.read_text() == 'before\na\nnull\n7\nStruct{id=1,name=x}\nStruct{id=2}\n{"free":true}\n'
    task.stop()


def test_the_sink_says_where_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="cannot write to file .*none/out: No such file"):
        sink_task(FileStreamSinkConnector, {"file": str(tmp_path / "none" / "out")})


@pytest.mark.parametrize(
    ("schema", "value", "line"),
    [
        (Schema(SchemaType.FLOAT64), 1e10, "1.0E10"),
        (Schema(SchemaType.FLOAT64), float("nan"), "NaN"),
        (Schema.struct({"id": Schema(SchemaType.FLOAT32)}), {"id": 0.5}, "Struct{id=0.5}"),
        (None, "x", "x"),
        (None, 1.50, "1.5"),
        (None, None, "null"),
        (None, [1], "[1]"),
    ],
)
def test_lines_are_java_s_texts(tmp_path: Path, schema: Schema | None, value: Any, line: str) -> None:
    """The texts that tests/conformance/connect/test_rows.py gets from Kafka Connect."""
    task = sink_task(FileStreamSinkConnector, {"file": str(tmp_path / "out")})
    task.put([RecordBatch.from_records([Record("t", value, schema, offset=0)])])
    task.flush()
    task.stop()
    assert (tmp_path / "out").read_text() == f"{line}\n"


def test_validation_tells_a_folder_from_a_file(tmp_path: Path) -> None:
    expected = ("file", f"file is {tmp_path}, which is a folder: give the path of a file")
    for problems in (
        FileStreamSourceConnector.check(FileStreamSourceConfig(file=str(tmp_path), topic="lines")),
        FileStreamSinkConnector.check(FileStreamSinkConfig(file=str(tmp_path))),
    ):
        assert [(problem.key, problem.message) for problem in problems] == [expected]
    later = FileStreamSourceConfig(file=str(tmp_path / "none" / "log"), topic="lines")
    assert list(FileStreamSourceConnector.check(later)) == [], "a source waits for its file"

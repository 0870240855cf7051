"""Reading files, both those of our formats and those written by other libraries."""

from __future__ import annotations

import datetime
import gzip
import io
import tracemalloc
from pathlib import Path
from typing import Any
from unittest import mock

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import DataError, Schema, SchemaType
from connectors.objects.formats import FORMATS, Chunk, FormatOptions, format_of, jsonl

ROW = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "city": Schema(SchemaType.STRING, optional=True),
        "at": Schema.timestamp(),
        "tags": Schema.array(Schema(SchemaType.STRING)),
        "price": Schema.decimal(2, 9, optional=True),
    },
    name="shop.row",
)
AT = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def rows(count: int) -> pa.Array:
    made = [
        {"id": n, "city": ("de", "fr", None)[n % 3], "at": AT + datetime.timedelta(seconds=n), "tags": ["x"] * (n % 3)}
        for n in range(count)
    ]
    return pa.array(made, ROW.arrow_type)


def read(name: str, data: bytes, **options: Any) -> list[Chunk]:
    return list(format_of(name, FormatOptions(**options)).read(io.BytesIO(data)))


def values(chunks: list[Chunk]) -> list[Any]:
    return [value for chunk in chunks for value in chunk.values.to_pylist()]


@pytest.mark.parametrize("name, codec", [("AvroFormat", c) for c in ("null", "deflate", "snappy", "bzip2")])
def test_a_written_value_is_read_back(name: str, codec: str, tmp_path: Path) -> None:
    written = format_of(name, FormatOptions(avro_codec=codec)).open(tmp_path / "f", ROW)
    written.write(rows(100))
    written.write(rows(7))
    written.close()
    chunks = read(name, (tmp_path / "f").read_bytes())
    assert {chunk.schema for chunk in chunks} == {ROW}
    assert values(chunks) == rows(100).to_pylist() + rows(7).to_pylist()


def test_parquet_is_read_with_the_types_that_it_has(tmp_path: Path) -> None:
    table = pa.table(
        {"n": pa.array([1, 2], pa.uint8()), "at": pa.array([1_500, None], pa.timestamp("us")), "s": ["a", "b"]},
        schema=pa.schema([pa.field("n", pa.uint8(), False), ("at", pa.timestamp("us")), ("s", pa.large_string())]),
    )
    pq.write_table(table, tmp_path / "f")
    (chunk,) = read("ParquetFormat", (tmp_path / "f").read_bytes())
    assert chunk.schema is not None
    types = {field.name: (field.schema.type, field.schema.optional) for field in chunk.schema.fields}
    assert types == {"n": (SchemaType.INT16, False), "at": (SchemaType.INT64, True), "s": (SchemaType.STRING, True)}
    assert chunk.values.type == chunk.schema.arrow_type
    epoch = datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=datetime.UTC)
    assert chunk.values.to_pylist() == [{"n": 1, "at": epoch, "s": "a"}, {"n": 2, "at": None, "s": "b"}]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_avro_files_of_others_are_read(codec: str) -> None:
    schema = {
        "type": "record", "name": "R", "namespace": "shop",
        "fields": [{"name": "id", "type": "long"}, {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
                   {"name": "more", "type": ["null", {"type": "map", "values": "double"}]}],
    }  # fmt: skip
    given_rows = [{"id": n, "kind": "AB"[n % 2], "more": {"x": n / 2} if n % 3 else None} for n in range(50)]
    file = io.BytesIO()
    fastavro.writer(file, schema, given_rows, codec=codec, sync_interval=64)
    chunks = read("AvroFormat", file.getvalue())
    assert len(chunks) > 1
    assert {chunk.schema.name for chunk in chunks if chunk.schema} == {"shop.R"}
    read_rows = [{**row, "more": dict(row["more"]) if row["more"] is not None else None} for row in values(chunks)]
    assert read_rows == given_rows


def _bomb(codec: str, size: int, rows: int = 1) -> bytes:
    """An Avro file of one block that says a string of so many zeros."""
    import bz2
    import lzma
    import zlib

    import cramjam

    def number(n: int) -> bytes:
        n, out = n << 1, b""
        while n >= 0x80:
            out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
        return out + bytes([n])

    plain = number(size) + bytes(size)
    packed = {
        "null": lambda: plain,
        "deflate": lambda: zlib.compress(plain, 9)[2:-4],
        "bzip2": lambda: bz2.compress(plain),
        "xz": lambda: lzma.compress(plain, preset=0),
        "zstandard": lambda: bytes(cramjam.zstd.compress(plain)),
        "snappy": lambda: bytes(cramjam.snappy.compress_raw(plain)) + zlib.crc32(plain).to_bytes(4, "big"),
    }[codec]()
    meta = {
        b"avro.schema": b'{"type":"record","name":"R","fields":[{"name":"a","type":"bytes"}]}',
        b"avro.codec": codec.encode(),
    }
    entries = b"".join(number(len(part)) + part for entry in meta.items() for part in entry)
    head = b"Obj\x01" + number(len(meta)) + entries + number(0) + b"s" * 16
    return head + number(rows) + number(len(packed)) + packed + b"s" * 16


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_a_block_is_not_unpacked_beyond_what_is_reasonable(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.objects.formats.avro._MOST_UNPACKED", 1 << 20)
    (chunk,) = read("AvroFormat", _bomb(codec, (1 << 20) - 3))
    assert len(values([chunk])[0]["a"]) == (1 << 20) - 3
    bomb = _bomb(codec, 64 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=f"a block is not {codec}: it holds more than 1048576 bytes"):
            read("AvroFormat", bomb)
        assert tracemalloc.get_traced_memory()[1] < len(bomb) * 3 + (8 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz"])
def test_a_block_that_is_cut_off_is_told(codec: str) -> None:
    whole = _bomb(codec, 1000)
    end = len(whole) - 16
    with pytest.raises(DataError):
        read("AvroFormat", whole[: end - 5] + whole[end:])


def test_rows_without_content_have_a_limit() -> None:
    with pytest.raises(DataError, match="says that it has 1000000000 rows"):
        read("AvroFormat", _bomb("null", 5, rows=1_000_000_000))


def test_rows_that_take_bytes_are_as_many_as_bytes() -> None:
    with pytest.raises(DataError, match=r"a block of \d+ bytes says that it has 70000 rows"):
        read("AvroFormat", _bomb("null", 5, rows=70_000))


@given(
    st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", b"bc" * 4]), max_size=30).map(b"".join), st.integers(1, 9)
)
@settings(deadline=None)
def test_records_are_the_same_however_a_file_is_cut_into_blocks(data: bytes, block: int) -> None:
    with mock.patch.object(jsonl, "_BLOCK_BYTES", block):
        for separator in (b"\n", b"\r\n"):
            made = [row for rows in jsonl.separated(io.BytesIO(data), separator) for row in rows.to_pylist()]
            *whole, rest = data.split(separator)
            assert made == [*whole, *([rest] if rest else [])]


def test_a_record_without_an_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes of a packed file are gigabytes. The bound is far above a record of Kafka's."""
    monkeypatch.setattr(jsonl, "_BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(jsonl, "MOST_RECORD_BYTES", 1 << 20)
    bomb = gzip.compress(b"[" * (1 << 28))
    tracemalloc.start()
    try:
        with (
            gzip.open(io.BytesIO(bomb)) as file,
            pytest.raises(DataError, match="a record has more than 1048576 bytes"),
        ):
            list(format_of("JsonFormat", FormatOptions()).read(file))  # type: ignore[arg-type]
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_lines_of_json_are_values_without_schema() -> None:
    chunks = read("JsonFormat", b'{"a":1}\r\n\n  \n[2]\n"\xc3\xbc"')
    assert {chunk.schema for chunk in chunks} == {None}
    assert values(chunks) == ['{"a":1}', "[2]", '"\u00fc"']


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, [b"a", b"", b"b;c"]),
        ({"raw_separator": b";"}, [b"a\n\nb", b"c\n"]),
        ({"raw_separator": b""}, [b"a\n\nb;c\n"]),
        ({"raw_block_bytes": 3}, [b"a\n\n", b"b;c", b"\n"]),
    ],
)
def test_bytes_are_parted(options: dict[str, Any], expected: list[bytes]) -> None:
    assert values(read("ByteArrayFormat", b"a\n\nb;c\n", **options)) == expected


@given(st.lists(st.binary(max_size=20).filter(lambda b: b"\n" not in b), max_size=30), st.integers(1, 9))
@settings(max_examples=30)
def test_pieces_do_not_depend_on_how_much_is_read_at_once(lines: list[bytes], size: int) -> None:
    from connectors.objects.formats.jsonl import separated

    class Drops(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            return super().read(size)

    data = b"".join(line + b"\n" for line in lines)
    assert [piece for column in separated(Drops(data), b"\n") for piece in column.to_pylist()] == lines


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(max_examples=25)
def test_broken_files_are_named_as_such(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = _whole(name, tmp_path_factory)
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + data.draw(st.integers(0, 5)) :]
    try:
        for chunk in read(name, broken):
            chunk.values.validate(full=True)
    except DataError:
        pass


_files: dict[str, bytes] = {}


def _whole(name: str, folders: pytest.TempPathFactory) -> bytes:
    if name not in _files:
        path = folders.mktemp("whole") / "f"
        raw = name == "ByteArrayFormat"
        file = format_of(name, FormatOptions(csv_nested="json")).open(path, Schema(SchemaType.BYTES) if raw else ROW)
        file.write(pa.array([b"one", b"two"]) if raw else rows(20))
        file.close()
        _files[name] = path.read_bytes()
    return _files[name]

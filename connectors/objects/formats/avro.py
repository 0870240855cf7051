"""Avro object container files (Avro 1.12, "Object Container Files"), a block for each run of rows written."""

from __future__ import annotations

import bz2
import hashlib
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connect.api import DataError, Schema
from connect.api.formats import avro_bodies, avro_text
from connectors.objects.formats import FileFormat, OpenFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CODECS", "AvroFormat"]

_BLOCK_ROWS: Final = 16_000


def _deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


def _snappy(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")


CODECS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": bytes,
    "deflate": _deflate,
    "snappy": _snappy,
    "bzip2": bz2.compress,
}


class AvroFormat(FileFormat):
    @property
    def extension(self) -> str:
        return ".avro"

    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        if schema is None:
            raise DataError("Avro needs a schema, but the records have none: use a converter with schemas")
        return _AvroFile(path, schema, self.options.avro_codec)


class _AvroFile(OpenFile):
    """The sync marker is a hash of the schema, so that the same rows make the same file."""

    def __init__(self, path: Path, schema: Schema, codec: str) -> None:
        text = avro_text(schema).encode()
        self._schema, self._compress = schema, CODECS[codec]
        self._sync = hashlib.blake2b(text, digest_size=16).digest()
        self._file = path.open("wb")
        meta = {b"avro.schema": text, b"avro.codec": codec.encode()}
        entries = b"".join(_bytes(name) + _bytes(value) for name, value in meta.items())
        self._file.write(b"Obj\x01" + _long(len(meta)) + entries + _long(0) + self._sync)

    def write(self, values: pa.Array) -> None:
        blocks = []
        for start in range(0, len(values), _BLOCK_ROWS):
            rows = values.slice(start, _BLOCK_ROWS)
            body = self._compress(_joined(avro_bodies(self._schema, rows)))
            blocks.append(_long(len(rows)) + _bytes(body) + self._sync)
        self._file.write(b"".join(blocks))

    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        self._file.close()


def _joined(column: pa.Array) -> bytes:
    """All bytes of a binary column one after the other."""
    import numpy as np

    wide = column.type == "large_binary"
    offsets = np.frombuffer(column.buffers()[1], np.int64 if wide else np.int32)
    first, last = int(offsets[column.offset]), int(offsets[column.offset + len(column)])
    data = column.buffers()[2]
    return data[first:last].to_pybytes() if data is not None else b""


def _long(number: int) -> bytes:
    """A zigzag varint."""
    left = number << 1 if number >= 0 else (-number << 1) - 1
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data

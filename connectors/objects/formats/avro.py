"""Avro object container files (Avro 1.12, "Object Container Files"), with a block for each run of rows written."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from connect.api import DataError, Schema
from connect.formats import avro_blocks, avro_bodies, avro_text
from connectors.objects.formats import Chunk, FileFormat, OpenFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CODECS", "AvroFormat"]

_BLOCK_ROWS: Final = 16_000
_MAGIC: Final = b"Obj\x01"
_MOST_BYTES: Final = 1 << 30
"""The limit of a block or header entry, as stored in the file."""
_MOST_UNPACKED: Final = 256 * 1024 * 1024
"""The limit of an uncompressed block: a few kilobytes of compressed data can claim to be any number of gigabytes."""
_MOST_EMPTY_ROWS: Final = 64 * 1024
"""The limit of rows without content in a block: they take no bytes in the file, so a few bytes could stand for millions."""


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


class _TooLarge(ValueError):
    def __init__(self) -> None:
        super().__init__(f"it holds more than {_MOST_UNPACKED} bytes; a writer should begin blocks much sooner")


def _unpacked(decompressor: Any, data: bytes) -> bytes:
    """Decompress with a decompressor of the standard library, stopping at the limit."""
    plain: bytes = decompressor.decompress(data, _MOST_UNPACKED + 1)
    if len(plain) > _MOST_UNPACKED:
        raise _TooLarge
    if not decompressor.eof:
        raise ValueError("it is cut off")
    return plain


def _unsnappy(data: bytes) -> bytes:
    import cramjam

    if cramjam.snappy.decompress_raw_len(data[:-4]) > _MOST_UNPACKED:
        raise _TooLarge
    plain = bytes(cramjam.snappy.decompress_raw(data[:-4]))
    if zlib.crc32(plain).to_bytes(4, "big") != data[-4:]:
        raise ValueError("its checksum is wrong")
    return plain


def _unzstd(data: bytes) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        plain: bytes = stream.read(_MOST_UNPACKED + 1)
    if len(plain) > _MOST_UNPACKED:
        raise _TooLarge
    return plain


_DECODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": bytes,
    "deflate": lambda data: _unpacked(zlib.decompressobj(-15), data),
    "snappy": _unsnappy,
    "bzip2": lambda data: _unpacked(bz2.BZ2Decompressor(), data),
    "zstandard": _unzstd,
    "xz": lambda data: _unpacked(lzma.LZMADecompressor(), data),
}


class AvroFormat(FileFormat):
    @property
    def extension(self) -> str:
        return ".avro"

    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        if schema is None:
            raise DataError("Avro needs a schema, but the records have none: use a converter with schemas")
        return _AvroFile(path, schema, self.options.avro_codec)

    def read(self, file: BinaryIO) -> Iterator[Chunk]:
        source = _Source(file)
        meta = source.header()
        codec = meta.get("avro.codec", b"null").decode(errors="replace")
        if codec not in _DECODERS:
            raise DataError(f"its codec is {codec!r}; read are {', '.join(_DECODERS)}")
        schema, column = avro_blocks(meta.get("avro.schema", b"").decode(errors="replace"))
        sync = source.exactly(16)
        while (rows := source.rows()) is not None:
            packed = source.sized()
            try:
                data = _DECODERS[codec](packed)
            except Exception as error:  # each codec has errors of its own
                raise DataError(f"a block is not {codec}: {error}") from error
            if not 0 <= rows <= len(data) + _MOST_EMPTY_ROWS:
                raise DataError(f"a block of {len(data)} bytes says that it has {rows} rows")
            yield Chunk(schema, column(data, rows))
            if source.exactly(16) != sync:
                raise DataError("a block does not end with the file's sync marker")


class _AvroFile(OpenFile):
    """The sync marker is a hash of the schema, so that the same rows give the same file."""

    def __init__(self, path: Path, schema: Schema, codec: str) -> None:
        text = avro_text(schema).encode()
        self._schema, self._compress = schema, CODECS[codec]
        self._sync = hashlib.blake2b(text, digest_size=16).digest()
        self._file = path.open("wb")
        meta = {b"avro.schema": text, b"avro.codec": codec.encode()}
        entries = b"".join(_bytes(name) + _bytes(value) for name, value in meta.items())
        self._file.write(_MAGIC + _long(len(meta)) + entries + _long(0) + self._sync)

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
    """All bytes of a binary column, concatenated."""
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


class _Source:
    """Reads the parts of a container file in order. Raises DataError where the file is invalid."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise DataError("the file ends within a block")
        return data

    def number(self) -> int:
        return self._number(self.exactly(1))

    def rows(self) -> int | None:
        """The number of rows in the next block, None at the end of the file."""
        first = self._file.read(1)
        return self._number(first) if first else None

    def _number(self, byte: bytes) -> int:
        """A zigzag varint whose first byte was already read."""
        value = byte[0] & 0x7F
        for shift in range(7, 70, 7):
            if byte[0] < 0x80:
                break
            byte = self.exactly(1)
            value |= (byte[0] & 0x7F) << shift
        if byte[0] >= 0x80:
            raise DataError("a number goes on after 10 bytes")
        return (value >> 1) ^ -(value & 1)

    def sized(self) -> bytes:
        size = self.number()
        if not 0 <= size <= _MOST_BYTES:
            raise DataError(f"a length of {size}")
        return self.exactly(size)

    def header(self) -> dict[str, bytes]:
        """The metadata: a map of bytes, stored in blocks."""
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise DataError("not an Avro container file: it does not begin with Obj 01")
        metadata: dict[str, bytes] = {}
        while count := self.number():
            if count < 0:
                count = -count
                self.number()
            for _ in range(count):
                name = self.sized().decode(errors="replace")
                metadata[name] = self.sized()
        return metadata

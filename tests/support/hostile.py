"""Requests that are well-formed and ask for much: record batches of a few KiB that stand for millions of records."""

from __future__ import annotations

import functools
from typing import Final

import crc32c

from broker.protocol.compression import Codec, compress
from broker.protocol.records import ATTRIBUTES_AT, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader

__all__ = ["MANY", "NOW_MS", "batch_of", "many_records", "one_large_record"]

NOW_MS: Final = 1_700_000_000_000
MANY: Final = 16 * 1024 * 1024
"""As many of the smallest records with a key as decompress to 128 MiB."""

_WITH_KEY: Final = bytes([14, 0, 0, 0, 2]) + b"k" + bytes([1, 0])
_WITHOUT_KEY: Final = bytes([14, 0, 0, 0, 1, 2]) + b"v" + bytes([0])


@functools.cache
def many_records(codec: Codec, count: int = MANY, *, key: bool = True, max_timestamp: int = NOW_MS) -> bytes:
    """A batch of so many records of eight bytes, all of them at ``NOW_MS``, whatever ``max_timestamp`` says."""
    data = (_WITH_KEY if key else _WITHOUT_KEY) * count
    return batch_of(data, count, codec, max_timestamp=max_timestamp)


@functools.cache
def one_large_record(codec: Codec, size: int) -> bytes:
    """A batch of one record of about so many bytes."""
    value = bytes(size)
    body = bytearray([0, 0, 0, 2]) + b"k" + _varint(size) + value + b"\0"
    return batch_of(_varint(len(body)) + body, 1, codec)


def batch_of(data: bytes, count: int, codec: Codec, *, max_timestamp: int = NOW_MS) -> bytes:
    """A batch with these bytes for records, and a right checksum."""
    payload = compress(codec, data)
    header = BatchHeader(
        0, HEADER_SIZE - LOG_OVERHEAD + len(payload), -1, MAGIC, 0, int(codec), count - 1, NOW_MS, max_timestamp, -1, -1, -1, count
    )  # fmt: skip
    packed = HEADER.pack(*header)
    crc = crc32c.crc32c(payload, crc32c.crc32c(packed[ATTRIBUTES_AT:]))
    return HEADER.pack(*header._replace(crc=crc)) + payload


def _varint(value: int) -> bytes:
    out, number = bytearray(), value << 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)

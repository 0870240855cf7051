"""Record batches: valid ones of every codec and kind, and possible errors in them with a correct checksum."""

from __future__ import annotations

import functools
import random
import struct
import time
from typing import Final

import crc32c

from broker.protocol.compression import Codec, compress
from broker.protocol.records import ATTRIBUTES_AT, HEADER_SIZE, Record, encode_batch
from tests.support.hostile import NOW_MS, many_records

__all__ = ["drawn_records"]

_CRC_AT: Final = 17
_DELTA_AT: Final = 23


def drawn_records(chance: random.Random) -> bytes | None:
    """Random records of a producer for a partition: mostly one batch, mostly with an error in it."""
    kind = chance.choices(
        ["right", "changed", "made up", "bomb", "many", "several", "none", "noise"], [6, 10, 4, 0.3, 0.3, 1, 0.5, 1]
    )[0]
    match kind:
        case "right":
            return _batch(chance)
        case "changed":
            return _changed(bytearray(_batch(chance)), chance)
        case "made up":
            return _made_up(chance)
        case "bomb":
            return _bomb(chance.choice([Codec.GZIP, Codec.ZSTD, Codec.LZ4, Codec.SNAPPY]))
        case "many":
            return _many(chance)
        case "several":
            return b"".join(_batch(chance) for _ in range(chance.randrange(2, 4)))
        case "none":
            return chance.choice([None, b""])
    return chance.randbytes(chance.randrange(1, 200))


def _batch(chance: random.Random) -> bytes:
    count = chance.choice([1, 1, 2, 5, 50])
    records = [
        Record(
            chance.choice([None, b"", b"k%d" % chance.randrange(5)]),
            chance.choice([None, b"", b"v" * chance.randrange(300), compress(Codec.GZIP, b"inner" * 50)]),
            chance.choice([(), (("h", b"1"),), (("", None), ("h", b""))]),
            NOW_MS + chance.choice([0, number, -5000, 10**12]),
        )
        for number in range(count)
    ]
    producer = chance.choice([-1, -1, 5, 6, 2**62])
    return encode_batch(
        records,
        compression=chance.choice(list(Codec)),
        producer_id=producer,
        producer_epoch=chance.choice([0, 0, 1, 32767]) if producer >= 0 else -1,
        base_sequence=chance.choice([0, 1, count, 2**31 - 1]) if producer >= 0 else -1,
        transactional=chance.random() < 0.1,
        control=chance.random() < 0.05,
        base_offset=chance.choice([0, 0, 7]),
    )


def _changed(data: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.choice([1, 1, 2, 5])):
        # Half in the header, where what has a meaning is.
        at = chance.randrange(min(HEADER_SIZE, len(data)) if chance.random() < 0.5 else len(data))
        data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    if chance.random() < 0.2:
        del data[chance.randrange(len(data)) :]
    if chance.random() < 0.7:
        _right_length_and_checksum(data)
    return bytes(data)


def _right_length_and_checksum(data: bytearray) -> None:
    if len(data) >= HEADER_SIZE:
        struct.pack_into(">i", data, 8, len(data) - 12)
        struct.pack_into(">I", data, _CRC_AT, crc32c.crc32c(bytes(data[ATTRIBUTES_AT:])))


def _made_up(chance: random.Random) -> bytes:
    """An invented header, with noise or compressed noise for records."""
    body = chance.randbytes(chance.choice([0, 1, 20, 300]))
    codec = chance.choice([0, 1, 2, 3, 4, 5, 6, 7])
    if 1 <= codec <= 4 and chance.random() < 0.5:
        body = compress(Codec(codec), body)
    count = chance.choice([-1, 0, 1, 2, 1000, 2**31 - 1])
    delta = chance.choice([count - 1, 0, -1, 2**31 - 1]) if count > -(2**31) else 0
    data = bytearray(
        struct.pack(
            ">qiibIhiqqqhii",
            chance.choice([0, -1, 2**63 - 1]), 0, -1, chance.choice([2, 2, 2, 0, 1, 3, -1]), 0,
            codec | chance.choice([0, 0, 8, 16, 32, 64, 0x7F80]), max(min(delta, 2**31 - 1), -(2**31)),
            chance.choice([NOW_MS, -1, -(2**63)]), chance.choice([NOW_MS, -1, 2**63 - 1]),
            chance.choice([-1, 9]), chance.choice([-1, 0]), chance.choice([-1, 0, 3]), count,
        )
    )  # fmt: skip
    data += body
    _right_length_and_checksum(data)
    return bytes(data)


def _many(chance: random.Random) -> bytes:
    """A few KiB that stand for up to four million records, as they are said to be or not."""
    codec, count = chance.choice([Codec.GZIP, Codec.ZSTD, Codec.LZ4]), chance.choice([20_000, 300_000, 4_000_000])
    newest = chance.choice([NOW_MS, NOW_MS + 1, int(time.time() * 1000)])
    data = bytearray(many_records(codec, count, key=chance.random() < 0.7, max_timestamp=newest))
    if chance.random() < 0.3:
        claimed = chance.choice([count - 1, count + 1, 2 * count, 2**31 - 1])
        struct.pack_into(">i", data, _DELTA_AT, claimed - 1)
        struct.pack_into(">i", data, HEADER_SIZE - 4, claimed)
        _right_length_and_checksum(data)
    return bytes(data)


@functools.cache
def _bomb(codec: Codec) -> bytes:
    """A batch of a few hundred KiB at most whose records would become 400 MiB."""
    body = (
        compress(codec, bytes(400 * 1024 * 1024))
        if codec is not Codec.SNAPPY
        else compress(codec, bytes(16 * 1024 * 1024))
    )
    if len(body) > 900_000:
        body = body[:900_000]
    data = bytearray(encode_batch([Record(b"k", b"v", (), NOW_MS)], compression=codec)[:HEADER_SIZE]) + body
    _right_length_and_checksum(data)
    return bytes(data)

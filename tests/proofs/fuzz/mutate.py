"""Mutations of a request's bytes: changed, cut, stretched, spliced, or with a wrong frame length."""

from __future__ import annotations

import random
import struct
from typing import Final

__all__ = ["mutated"]

_LENGTHS: Final = (-(2**31), -2, -1, 0, 1, 127, 0x7FFF, 0x10000, 2**24, 2**31 - 1)
_HEADER: Final = 8


def mutated(content: bytes, other: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The frame to send, length and all, and what was done. ``other`` is another request to splice with."""
    data = bytearray(content)
    kind = chance.choices(
        ["nothing", "bytes", "length", "varint", "cut", "longer", "spliced", "tags", "header", "frame"],
        [14, 6, 6, 6, 3, 1, 2, 2, 1, 1],
    )[0]
    at = chance.randrange(_HEADER, len(data)) if len(data) > _HEADER else 0
    match kind:
        case "bytes":
            for _ in range(chance.choice([1, 2, 8])):
                data[chance.randrange(_HEADER, len(data))] = chance.randrange(256)
        case "length":
            struct.pack_into(">i", data, max(min(at, len(data) - 4), 0), chance.choice(_LENGTHS))
        case "varint":
            data[at : at + 1] = chance.choice(
                [b"\xff" * 5, b"\xff" * 10, b"\xff\xff\xff\xff\x0f", b"\x80\x00", b"\xff\x7f", b"\x00"]
            )
        case "cut":
            del data[at:]
        case "longer":
            data += chance.randbytes(chance.choice([1, 100, 70_000]))
        case "spliced":
            data = data[:at] + other[chance.randrange(len(other)) :]
        case "tags":
            data[at:at] = bytes([chance.choice([1, 2, 0x7F])]) + chance.randbytes(chance.choice([1, 6]))
        case "header":
            data[: chance.choice([2, 4])] = chance.randbytes(4)[: chance.choice([2, 4])]
    size = len(data)
    if kind == "frame":
        size = chance.choice([-1, -(2**31), 2**31 - 1, 104_857_601, size - 1, size + 1, 0])
    return struct.pack(">i", size) + bytes(data), kind

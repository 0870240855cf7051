"""Bytes as lines of offset, hexadecimal and text."""

from __future__ import annotations

from typing import Final

__all__ = ["hexdump"]

_IN_A_LINE: Final = 16


def hexdump(data: bytes, most: int = 4096) -> str:
    """The first ``most`` bytes."""
    lines = []
    for start in range(0, min(len(data), most), _IN_A_LINE):
        piece = data[start : min(start + _IN_A_LINE, most)]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<47}  {text}")
    return "\n".join(lines)

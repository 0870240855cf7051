"""The bitmaps that identify fields in a change event's header: ``0x650004E0``, and ``4-0x10`` for parts of a compound
field.

The n-th bit, counted from the right and from 0, is the n-th field of the Avro record. Source: Pub/Sub API guide, "Event
Deserialization Considerations".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

__all__ = ["encode"]


def encode(names: Sequence[tuple[str, Sequence[str]]], chosen: Collection[str]) -> list[str]:
    """The bitmaps of selected fields. ``names`` has all fields of the record in order, each with the names of its
    parts.

    A part is selected as ``Field.Part``, a whole compound field by its own name.
    """
    bitmaps = [_hex(index for index, (name, _) in enumerate(names) if name in chosen)]
    for index, (name, parts) in enumerate(names):
        bits = _hex(position for position, part in enumerate(parts) if f"{name}.{part}" in chosen)
        bitmaps.append(f"{index}-{bits}" if bits else "")
    return [each for each in bitmaps if each]


def _hex(bits: Iterable[int]) -> str:
    number = 0
    for bit in bits:
        number |= 1 << bit
    if not number:
        return ""
    digits = f"{number:X}"
    return f"0x{'0' * (len(digits) % 2)}{digits}"

"""Validates offsets that users set (KIP-875), with the original's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.api import ConnectError, OffsetChanges

__all__ = ["check_positions"]

_INT_MAX: Final = 2**31 - 1


def check_positions(offsets: OffsetChanges, *, texts: Sequence[str], only_zero: bool, partition: bool = True) -> None:
    """``texts`` are the members of a source partition that must be texts; ``partition`` says whether it must have a
    number too.

    Offsets to be deleted may have any form. Raises ConnectError.
    """
    for position, offset in offsets:
        if offset is None:
            continue
        for name in texts:
            _required(position, name, position.get(name), isinstance(position.get(name), str), "must be a string")
        if partition:
            number = position.get("partition")
            whole = isinstance(number, int) and not isinstance(number, bool) and number <= _INT_MAX
            _required(position, "partition", number, whole, "must be an integer")
            assert isinstance(number, int)
            _required(position, "partition", number, number >= 0, "cannot be negative")
        _check_offset(position, offset, only_zero)


def _required(source_partition: Mapping[str, Any], name: str, value: Any, good: bool, why: str) -> None:
    shown = _shown(source_partition)
    if name not in source_partition:
        raise ConnectError(f"Source partition {shown} is missing the '{name}' key, which is required")
    if not good:
        raise ConnectError(
            f"Source partition {shown} has an invalid value {_java(value)} for the '{name}' key, which {why}"
        )


def _check_offset(source_partition: Mapping[str, Any], offset: Mapping[str, Any], only_zero: bool) -> None:
    about = f"Source offset {_shown(offset)} for source partition {_shown(source_partition)}"
    if "offset" not in offset:
        raise ConnectError(f"{about} is missing the 'offset' key, which is required")
    value = offset["offset"]
    invalid = f"{about} has an invalid value {_java(value)} for the 'offset' key"
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConnectError(f"{invalid}, which must be an integer")
    if only_zero and value != 0:
        raise ConnectError(f"{invalid}; the only accepted value is 0")
    if value < 0:
        raise ConnectError(f"{invalid}, which cannot be negative")


def _shown(mapping: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}={_java(value)}" for name, value in mapping.items()) + "}"


def _java(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)

"""Messages with random values, from the field tables of the APIs that a broker serves."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from typing import Any, Final

from broker.protocol.fields import Field, Message

__all__ = ["Names", "drawn"]

_INTERESTING: Final = (
    -(2**63),
    -(2**31),
    -32768,
    -129,
    -128,
    -2,
    -1,
    0,
    1,
    2,
    3,
    7,
    100,
    127,
    128,
    255,
    32767,
    65535,
    2**31 - 1,
    2**63 - 1,
)
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED: Final = {"uint16": 16, "uint32": 32}


@dataclass(frozen=True)
class Names:
    """Names that exist on the broker, so that requests can refer to them."""

    topics: tuple[str, ...]
    topic_ids: tuple[uuid.UUID, ...]
    groups: tuple[str, ...] = ("fuzz-group", "fuzz-other")
    members: tuple[str, ...] = ("", "member-1")
    others: tuple[str, ...] = (
        "",
        "x",
        "range",
        "consumer",
        "0",
        "1",
        "retention.ms",
        "é" * 40,
        "a" * 300,
        "../up",
        "\0",
        "User:*",
        "*",
    )


def drawn(cls: type[Message], version: int, names: Names, chance: random.Random, depth: int = 0) -> Message:
    """A message of a class as a version has it; fields that it does not have keep their defaults."""
    values = {}
    for field in cls.FIELDS:
        if field.exists_in(version) and not (field.tag is not None and chance.random() < 0.7):
            values[field.name] = _field(field, version, names, chance, depth)
    return cls(**values)


def _field(field: Field, version: int, names: Names, chance: random.Random, depth: int) -> Any:
    if version >= field.null_since and chance.random() < 0.2:
        return None
    if field.array:
        count = chance.choice([0, 1, 1, 2, 3] if depth < 2 else [0, 1, 1])
        return [_one(field, version, names, chance, depth) for _ in range(count)]
    return _one(field, version, names, chance, depth)


def _one(field: Field, version: int, names: Names, chance: random.Random, depth: int) -> Any:
    kind, name = field.kind, field.name
    if not isinstance(kind, str):
        return drawn(kind, version, names, chance, depth + 1)
    if kind in ("string",):
        return _text(name, names, chance)
    if kind in ("bytes", "records"):
        return chance.randbytes(chance.choice([0, 1, 10, 200]))
    if kind == "uuid":
        return chance.choice([*names.topic_ids, uuid.UUID(int=0), uuid.UUID(int=chance.getrandbits(128))])
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "float64":
        return chance.choice([0.0, -1.0, 1.5, 1e300, float("inf"), float("nan")])
    return _number(kind, name, chance)


def _number(kind: str, name: str, chance: random.Random) -> int:
    if name.endswith(("_ms", "timeout")) and chance.random() < 0.9:
        return chance.choice([-1, 0, 1, 50, 200])  # so that what waits is over soon
    if "partition" in name and chance.random() < 0.7:
        return chance.randrange(2)
    if kind in _UNSIGNED:
        return abs(chance.choice(_INTERESTING)) % 2 ** _UNSIGNED[kind]
    bits = _BITS[kind]
    value = chance.choice(_INTERESTING) if chance.random() < 0.5 else chance.randrange(6)
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _text(name: str, names: Names, chance: random.Random) -> str:
    if chance.random() < 0.2:
        return chance.choice(names.others)
    if "topic" in name or name == "name":
        return chance.choice(names.topics)
    if "group" in name or name == "key":
        return chance.choice(names.groups)
    if "member" in name:
        return chance.choice(names.members)
    return chance.choice((*names.topics, *names.groups, *names.others))

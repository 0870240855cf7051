"""Columns whose texts are cut, replaced by asterisks or by hashes: ``column.truncate.to.*`` and ``column.mask.*``.

Source: debezium.io, "Connector properties"; hashes are those of Debezium's ``MaskStrings``, in both of its versions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import JavaRegex
from connectors.debezium.javaobjects import written_text

__all__ = ["Mask", "Masks", "cut_problem", "mask_problem"]

_FORMS: Final = "column.mask.with.N.chars, column.mask.hash.ALGORITHM.with.salt.SALT or column.mask.hash.v2.ALGORITHM.with.salt.SALT"
_ALGORITHMS: Final = {name for name in hashlib.algorithms_available if hashlib.new(name).digest_size}
_STARS: Final = re.compile(r"with\.(\d{1,5})\.chars")
_HASH: Final = re.compile(r"hash\.(v2\.)?([^.]+)\.with\.salt\.(.+)", re.DOTALL)
_CUT: Final = re.compile(r"(\d{1,9})\.chars")


class Mask(NamedTuple):
    """What is done to a column of texts, and the parameters of its schema that tell of it."""

    change: Callable[[pa.Array], pa.Array]
    parameters: dict[str, str]


def mask_problem(name: str) -> str | None:
    """What is wrong with a key after ``column.mask.``."""
    if _STARS.fullmatch(name):
        return None
    match = _HASH.fullmatch(name)
    if match is None:
        return f"column.mask.{name} should be {_FORMS}"
    if _algorithm(match[2]) in _ALGORITHMS:
        return None
    return f"column.mask.{name}: there is no hash algorithm {match[2]!r} here; SHA-256 and SHA-512 are among those there are"


def cut_problem(name: str) -> str | None:
    """What is wrong with a key after ``column.truncate.to.``."""
    return None if _CUT.fullmatch(name) else f"column.truncate.to.{name} should be column.truncate.to.N.chars"


def _algorithm(name: str) -> str:
    """Java's name of an algorithm as Python has it: SHA-512/256 is sha512_256, SHA3-256 sha3_256."""
    lowered = name.lower()
    if lowered.startswith("sha-"):
        return "sha" + lowered.removeprefix("sha-").replace("/", "_")
    return lowered.replace("-", "_")


class Masks:
    """Those of a configuration. Patterns match whole names, whatever their case."""

    def __init__(self, masks: Mapping[str, str], cuts: Mapping[str, str]) -> None:
        """Keys after ``column.mask.`` and ``column.truncate.to.``, and the patterns of the columns that they mean."""
        stars = [(name, text, False) for name, text in masks.items() if _STARS.fullmatch(name)]
        hashes = [(name, text, False) for name, text in masks.items() if not _STARS.fullmatch(name)]
        rules = [*((name, text, True) for name, text in cuts.items()), *stars, *hashes]  # the first that fits counts
        self._rules = [
            ([JavaRegex(pattern.strip(), ignore_case=True) for pattern in text.split(",")], name, is_cut)
            for name, text, is_cut in rules
        ]

    def of(self, names: Iterable[str], length: int | None) -> Mask | None:
        """What is done to the column of one of these names, that holds ``length`` characters at most (None: any number)."""
        called = list(names)
        for patterns, name, is_cut in self._rules:
            if any(pattern.fullmatch(column_name) for pattern in patterns for column_name in called):
                return _cut(int(name.split(".")[0])) if is_cut else _mask(name, length)
        return None


def _cut(length: int) -> Mask:
    return Mask(lambda column: pc.utf8_slice_codeunits(column, 0, length), {"truncateLength": str(length)})


def _mask(name: str, length: int | None) -> Mask:
    told = {"masked": "true"}
    match = _STARS.fullmatch(name)
    if match is not None:
        stars = "*" * int(match[1])
        return Mask(lambda column: pa.repeat(pa.scalar(stars), len(column)), told)  # nulls too, as the original does
    hashed = _HASH.fullmatch(name)
    assert hashed is not None
    second, algorithm, salt = bool(hashed[1]), _algorithm(hashed[2]), hashed[3].encode()

    def one(text: str) -> str:
        raw = text.encode() if second else written_text(text)
        return hashlib.new(algorithm, salt + raw).hexdigest()[: length or None]

    return Mask(
        lambda column: pa.array([None if text is None else one(text) for text in column.to_pylist()], pa.string()), told
    )

"""Columns whose texts are truncated, or replaced by asterisks or hashes: ``column.truncate.to.*`` and
``column.mask.*``.

Source: debezium.io, "Connector properties"; the hashes are those of both versions of Debezium's ``MaskStrings``.
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
    """The function that masks a text column, and the schema parameters that record the mask."""

    change: Callable[[pa.Array], pa.Array]
    parameters: dict[str, str]


def mask_problem(name: str) -> str | None:
    """Why the part after ``column.mask.`` is invalid; None if it is valid."""
    if _STARS.fullmatch(name):
        return None
    match = _HASH.fullmatch(name)
    if match is None:
        return f"column.mask.{name} should be {_FORMS}"
    if _algorithm(match[2]) in _ALGORITHMS:
        return None
    return f"column.mask.{name}: there is no hash algorithm {match[2]!r} here; SHA-256 and SHA-512 are among those there are"


def cut_problem(name: str) -> str | None:
    """Why the part after ``column.truncate.to.`` is invalid; None if it is valid."""
    return None if _CUT.fullmatch(name) else f"column.truncate.to.{name} should be column.truncate.to.N.chars"


def _algorithm(name: str) -> str:
    """Python's name of a hash algorithm that Java names: SHA-512/256 is sha512_256, SHA3-256 is sha3_256."""
    lowered = name.lower()
    if lowered.startswith("sha-"):
        return "sha" + lowered.removeprefix("sha-").replace("/", "_")
    return lowered.replace("-", "_")


class Masks:
    """A configuration's masks. Patterns match whole names, ignoring case."""

    def __init__(self, masks: Mapping[str, str], cuts: Mapping[str, str]) -> None:
        """``masks`` and ``cuts`` map the part after ``column.mask.`` and ``column.truncate.to.`` to the patterns of the
        columns.
        """
        stars = [(name, text, False) for name, text in masks.items() if _STARS.fullmatch(name)]
        hashes = [(name, text, False) for name, text in masks.items() if not _STARS.fullmatch(name)]
        # the first rule that matches wins
        rules = [*((name, text, True) for name, text in cuts.items()), *stars, *hashes]
        self._rules = [
            ([JavaRegex(pattern.strip(), ignore_case=True) for pattern in text.split(",")], name, is_cut)
            for name, text, is_cut in rules
        ]

    def of(self, names: Iterable[str], length: int | None) -> Mask | None:
        """The mask of the column with one of these names, which holds at most ``length`` characters (None: any number)."""
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
        # masks nulls too, as the original does
        return Mask(lambda column: pa.repeat(pa.scalar(stars), len(column)), told)
    hashed = _HASH.fullmatch(name)
    assert hashed is not None
    second, algorithm, salt = bool(hashed[1]), _algorithm(hashed[2]), hashed[3].encode()

    def one(text: str) -> str:
        raw = text.encode() if second else written_text(text)
        return hashlib.new(algorithm, salt + raw).hexdigest()[: length or None]

    return Mask(
        lambda column: pa.array([None if text is None else one(text) for text in column.to_pylist()], pa.string()), told
    )

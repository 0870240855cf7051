"""Tells records that can't be hits of a search from their bytes, so that most records need not be decoded."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tidegate.kit.errors import TidegateError
from tidegate.records.decoding import is_framed

if TYPE_CHECKING:
    from registry.client import RegistryClient

__all__ = ["may_show"]

_WORDS: Final = re.compile("[a-z0-9]+")
_OF_NUMBERS: Final = frozenset("0123456789e")
_NUMBER_MAY_CHANGE: Final = re.compile(rb"[0-9][eE][+-]?[0-9]|\.000000")
"""A number with an exponent, or many zeros behind the point, is shown with another exponent."""
_BASE64: Final = "base64 undecodable"
"""Words around bytes that are no text."""
_OF_AVRO: Final = frozenset("0123456789etz")
"""Letters of numbers and times, which Avro has in binary form."""
_CONSTANTS: Final = "true false null nan infinity"


def may_show(text: str, client: RegistryClient | None) -> Callable[[bytes | None], bool] | None:
    """Whether a key or value of these bytes may have ``text`` in what ``tidegate.records`` shows of it, without regard to case.

    False only for bytes that do not have it. Words of ASCII letters and digits are looked for as they are: JSON and text
    have them in their bytes, and so have strings in Avro. A control character in a string of Avro is shown as an escape; its
    letter, the n of ``\\n``, is no part of such a word. None where the bytes can't tell, as for a text of signs.
    """
    words = _WORDS.findall(text.casefold())
    if not words or any(word in _BASE64 for word in words):
        return None
    sure = [word for word in words if not _OF_NUMBERS.issuperset(word)]
    of_text = _may_be_in_text(sure or words, numbers=not sure)
    if client is None:
        return of_text
    of_avro = _may_be_in_avro(words, client)

    def may(data: bytes | None) -> bool:
        if data is not None and is_framed(data):
            return of_avro is None or of_avro(data)
        return of_text(data)

    return may


def _may_be_in_text(words: list[str], *, numbers: bool) -> Callable[[bytes | None], bool]:
    encoded = [word.encode() for word in words]

    def may(data: bytes | None) -> bool:
        if data is None:
            return all(word in "null" for word in words)
        folded = data.lower()
        if b"\\" in data or b"base64" in folded:
            return True
        if not data.isascii():
            try:
                text = data.decode().casefold()
            except UnicodeDecodeError:
                return True
            found = all(word in text for word in words)
        else:
            found = all(word in folded for word in encoded)
        return found or (numbers and _NUMBER_MAY_CHANGE.search(data) is not None)

    return may


def _may_be_in_avro(words: list[str], client: RegistryClient) -> Callable[[bytes], bool] | None:
    sure = [word for word in words if not _OF_AVRO.issuperset(word) and word not in _CONSTANTS]
    if not sure:
        return None
    by_schema: dict[bytes, bool] = {}

    def may(data: bytes) -> bool:
        has_strings = by_schema.get(data[:5])
        if has_strings is None:
            has_strings = by_schema[data[:5]] = _is_plain(int.from_bytes(data[1:5], "big"), sure, client)
        if not has_strings:
            return True
        text = data[5:].decode(errors="replace").casefold()
        return all(word in text for word in sure)

    return may


def _is_plain(schema_id: int, words: list[str], client: RegistryClient) -> bool:
    """Whether such words are shown of strings of the schema only: not of its names, and not of bytes, which have their own form."""
    try:
        if client.any_schema(schema_id).schema_type != "AVRO":
            return False
        text = client.schema(schema_id).resolved.casefold()
    except TidegateError:
        return False
    return not any(word in text for word in (*words, '"bytes"', '"fixed"'))

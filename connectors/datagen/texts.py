"""Random texts that match a regular expression."""

from __future__ import annotations

import importlib
import string
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from connect.api import ConnectError

__all__ = ["Text", "texts_of"]

Text = Callable[[Random], str]

_MOST_MORE: Final = 10
"""For a part that may repeat without limit: the most repetitions beyond its minimum."""
_PRINTABLE: Final = "".join(chr(code) for code in range(0x20, 0x7F))
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_NOT_DIGIT": "".join(sorted(set(_PRINTABLE) - set(string.digits))),
    "CATEGORY_WORD": f"{string.ascii_letters}{string.digits}_",
    "CATEGORY_NOT_WORD": "".join(sorted(set(_PRINTABLE) - {*string.ascii_letters, *string.digits, "_"})),
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": _PRINTABLE[1:],
}


def texts_of(regex: str) -> Text:
    """A function that generates texts.

    Raises ConnectError for an invalid regular expression, or one that uses lookahead or lookbehind.
    """
    parser = importlib.import_module("re._parser")  # the standard library's own reading of the syntax
    try:
        return _sequence(parser.parse(regex))
    except (parser.error, OverflowError, RecursionError) as error:
        raise ConnectError(f"{regex!r} is not a regular expression: {error}") from error


def _sequence(parts: Sequence[Any]) -> Text:
    made = [_part(str(operation), argument) for operation, argument in parts]
    return lambda random: "".join([generate(random) for generate in made])


def _part(operation: str, argument: Any) -> Text:
    match operation:
        case "LITERAL":
            return lambda random: chr(argument)
        case "ANY":
            return _any_of(_PRINTABLE)
        case "NOT_LITERAL":
            return _any_of(_PRINTABLE.replace(chr(argument), ""))
        case "IN":
            return _any_of(_members(argument))
        case "CATEGORY":
            return _any_of(_CATEGORIES[str(argument)])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _repeated(*argument)
        case "SUBPATTERN":
            return _sequence(argument[-1])
        case "ATOMIC_GROUP":
            return _sequence(argument)
        case "BRANCH":
            branches = [_sequence(branch) for branch in argument[1]]
            return lambda random: random.choice(branches)(random)
        case "AT":
            return lambda random: ""
    raise ConnectError(f"texts cannot be made of a regular expression with {operation.lower()}")


def _repeated(least: int, most: int, parts: Sequence[Any]) -> Text:
    inner, most = _sequence(parts), min(int(most), least + _MOST_MORE)
    return lambda random: "".join([inner(random) for _ in range(random.randint(least, most))])


def _members(parts: Sequence[Any]) -> str:
    """The characters of a character class."""
    names: set[str] = set()
    negated = False
    for operation, argument in parts:
        match str(operation):
            case "NEGATE":
                negated = True
            case "LITERAL":
                names.add(chr(argument))
            case "RANGE":
                names.update(map(chr, range(argument[0], argument[1] + 1)))
            case "CATEGORY":
                names.update(_CATEGORIES[str(argument)])
    members = set(_PRINTABLE) - names if negated else names
    if not members:
        raise ConnectError("a class of a regular expression has no printable character")
    return "".join(sorted(members))


def _any_of(characters: str) -> Text:
    return lambda random: random.choice(characters)

"""Regular expressions in Java's syntax, as in connector configurations.

The `regex` library supports nearly all of it (named groups ``(?<name>...)``, unions and intersections of character
classes, possessive quantifiers, flags in the middle); the rest is rewritten here. Source: the class documentation of
``java.util.regex.Pattern``. Case folding is Unicode's, Java's is ASCII's without ``(?u)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from tidegate.kit.errors import TidegateError

__all__ = ["JavaRegex", "RegexTooSlow"]

_TIMEOUT_S: Final = 1.0
"""The time limit for one match: a pattern like ``(a+)+b`` would take years with some texts."""

_WORD: Final = "[a-zA-Z_0-9]"
_CLASSES: Final = {
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[a-zA-Z_0-9]",
    "W": "[^a-zA-Z_0-9]",
    "s": r"[ \t\n\x0B\f\r]",
    "S": r"[^ \t\n\x0B\f\r]",
    "z": r"\Z",
    "Z": r"(?=\r?\n?\Z)",
    "e": r"\x1B",
}
"""Escapes that mean ASCII in Java, or that have another spelling here."""

_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7F",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0B\f\r",
}
_PROPERTIES: Final = {
    "javaLowerCase": "Lowercase",
    "javaUpperCase": "Uppercase",
    "javaWhitespace": "White_Space",
    "javaMirrored": "Bidi_Mirrored",
}
_COUNT: Final = re.compile(r"\{\d+(?:,\d*)?\}")
_NAMED: Final = re.compile(r"\(\?(P?)<([a-zA-Z][a-zA-Z0-9]*)>")
_OCTAL: Final = re.compile(r"[0-3][0-7]{2}|[0-7]{1,2}")


class RegexTooSlow(TidegateError):
    """A pattern took too long with a text."""


class JavaRegex:
    """A compiled pattern. Raises ValueError for a pattern that is invalid in Java too; matching raises RegexTooSlow."""

    __slots__ = ("_compiled", "pattern")

    def __init__(self, pattern: str, *, ignore_case: bool = False, dot_all: bool = False) -> None:
        self.pattern = pattern
        self._compiled = _compiled(pattern, ignore_case, dot_all)

    def __repr__(self) -> str:
        return f"JavaRegex({self.pattern!r})"

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return int(self._compiled.groups)

    def fullmatch(self, text: str) -> Any:
        """The match of the whole text, or None (``Matcher.matches``)."""
        return self._timed(self._compiled.fullmatch, text)

    def search(self, text: str) -> Any:
        """The first match in the text, or None (``Matcher.find``)."""
        return self._timed(self._compiled.search, text)

    def replace_whole(self, text: str, replacement: str) -> str | None:
        """The replacement of a text that the pattern matches completely; None for other texts."""
        match = self.fullmatch(text)
        return None if match is None else str(match.expand(self._template(replacement)))

    def replace_all(self, text: str, replacement: str) -> str:
        """``Matcher.replaceAll``. Raises ValueError for a bad replacement."""
        return str(self._timed(partial(self._compiled.sub, self._template(replacement)), text))

    def check_replacement(self, replacement: str) -> None:
        """Raises ValueError for a replacement with an unknown group, or one that ends within a group name."""
        self._template(replacement)

    def _template(self, replacement: str) -> str:
        r"""Convert a replacement in Java's syntax (``$1``, ``${name}``, ``\$``) to the library's."""
        groups, names = self._compiled.groups, self._compiled.groupindex
        made: list[str] = []
        at = 0
        while at < len(replacement):
            letter, rest = replacement[at], replacement[at + 1 :]
            if letter == "\\":
                if not rest:
                    raise ValueError("character to be escaped is missing")
                made.append(rest[0].replace("\\", "\\\\"))
                at += 2
            elif letter != "$":
                made.append(letter)
                at += 1
            elif rest.startswith("{"):
                name, closed, _ = rest[1:].partition("}")
                if not closed:
                    raise ValueError("named capturing group is missing trailing '}'")
                if name not in names:
                    raise ValueError(f"No group with name {{{name}}}")
                made.append(f"\\g<{name}>")
                at += len(name) + 3
            else:
                number, digits = _group_number(rest, groups)
                made.append(f"\\g<{number}>")
                at += 1 + digits
        return "".join(made)

    def _timed(self, match: Callable[..., Any], text: str) -> Any:
        try:
            return match(text, timeout=_TIMEOUT_S)
        except TimeoutError as error:
            shown = text if len(text) <= 60 else f"{text[:60]}..."
            raise RegexTooSlow(
                f"the regular expression {self.pattern!r} took more than {_TIMEOUT_S:g} s with {shown!r}: avoid nested repetition"
            ) from error


@lru_cache(maxsize=1000)
def _compiled(pattern: str, ignore_case: bool, dot_all: bool) -> Any:
    import regex

    flags = regex.V1 | (regex.IGNORECASE if ignore_case else 0) | (regex.DOTALL if dot_all else 0)
    try:
        return regex.compile(_translated(pattern), flags)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _group_number(text: str, groups: int) -> tuple[int, int]:
    """The group number at the start of a text, and its length: as many digits as form an existing group's number."""
    if not text[:1].isdigit():
        raise ValueError("Illegal group reference")
    number, digits = int(text[0]), 1
    while text[digits : digits + 1].isdigit() and number * 10 + int(text[digits]) <= groups:
        number, digits = number * 10 + int(text[digits]), digits + 1
    if number > groups:
        raise ValueError(f"No group {number}")
    return number, digits


def _translated(pattern: str) -> str:
    made: list[str] = []
    names: set[str] = set()
    at, depth = 0, 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            piece, at = _escape(pattern, at)
            made.append(piece)
            continue
        if letter == "[":
            depth += 1
        elif letter == "]" and depth:
            depth -= 1
        elif letter == "{" and not depth and _COUNT.match(pattern, at) is None:
            raise ValueError(f"Illegal repetition near index {at}")
        elif letter == "(" and not depth and (group := _NAMED.match(pattern, at)):
            if group[1] or group[2] in names:
                raise ValueError(
                    f"Named capturing group <{group[2]}> is already defined"
                    if not group[1]
                    else "Unknown inline modifier: write (?<name>...)"
                )
            names.add(group[2])
        made.append(letter)
        at += 1
    return "".join(made)


def _escape(pattern: str, at: int) -> tuple[str, int]:
    """The translation of the escape at a position, and the position after it."""
    letter = pattern[at + 1 : at + 2]
    rest = pattern[at + 2 :]
    if not letter:
        raise ValueError("Unescaped trailing backslash")
    if letter == "0" and (octal := _OCTAL.match(rest)):
        return f"\\U{int(octal[0], 8):08x}", at + 2 + octal.end()
    if letter == "Q":
        quoted, end, _ = rest.partition("\\E")
        return "".join(_literal(character) for character in quoted), at + 2 + len(quoted) + len(end)
    if letter in _CLASSES:
        return _CLASSES[letter], at + 2
    if letter == "k" and rest.startswith("<"):
        return f"\\g{rest.partition('>')[0]}>", at + 3 + len(rest.partition(">")[0])
    if letter == "x" and rest.startswith("{"):
        digits = rest[1:].partition("}")[0]
        return f"\\U{digits:0>8}", at + 4 + len(digits)
    if letter in "pP":
        name = rest[1:].partition("}")[0] if rest.startswith("{") else rest[:1]
        after = at + 2 + (len(name) + 2 if rest.startswith("{") else 1)
        if name in _POSIX:
            return f"[{'^' if letter == 'P' else ''}{_POSIX[name]}]", after
        return f"\\{letter}{{{_PROPERTIES.get(name, name.removeprefix('Is'))}}}", after
    return pattern[at : at + 2], at + 2


def _literal(character: str) -> str:
    return character if character.isalnum() or character == "_" or not character.isascii() else f"\\{character}"

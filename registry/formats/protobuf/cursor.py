"""Reads words, names, numbers and strings of a ``.proto`` file; skips whitespace and comments."""

from __future__ import annotations

import re
from typing import Final, NoReturn

__all__ = ["Cursor", "ProtoError"]

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)+")
_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]+", re.ASCII)
_PART: Final = re.compile(r"[A-Za-z0-9_\-]+", re.ASCII)
_PLAIN: Final = re.compile(r"[^\\'\"\n]+")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX: Final = re.compile(r"[0-9A-Fa-f]{1,2}", re.ASCII)
_OCTAL: Final = re.compile(r"[0-7]{1,3}")


class ProtoError(ValueError):
    """The text is not a ``.proto`` file; the message says where and why."""


class Cursor:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def fail(self, words: str) -> NoReturn:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - (self._text.rfind("\n", 0, self._at) + 1) + 1
        raise ProtoError(f"Syntax error in :{line}:{column}: {words}")

    def _skip(self) -> None:
        if (blank := _BLANK.match(self._text, self._at)) is not None:
            self._at = blank.end()

    @property
    def exhausted(self) -> bool:
        self._skip()
        return self._at >= len(self._text)

    def peek(self) -> str:
        self._skip()
        if self._at >= len(self._text):
            self.fail("unexpected end of file")
        return self._text[self._at]

    def char(self) -> str:
        character = self.peek()
        self._at += 1
        return character

    def take(self, char: str) -> bool:
        """Consume the character if it comes next."""
        if self.peek() != char:
            return False
        self._at += 1
        return True

    def back(self) -> None:
        """Un-read the character just read."""
        self._at -= 1

    def require(self, char: str) -> None:
        character = self.char()
        if character != char:
            self._at -= 1
            self.fail(f"expected '{char}' but was '{character}'")

    def word(self, *, dots: bool = True) -> str:
        self._skip()
        match = (_WORD if dots else _PART).match(self._text, self._at)
        if match is None:
            self.fail("expected a word")
        self._at = match.end()
        return match[0]

    def identifier(self) -> str:
        """A name that must not begin with a digit."""
        self._skip()
        if self._text[self._at : self._at + 1].isdigit():
            self.fail("field and constant names cannot start with a digit")
        return self.name()

    def name(self, *, keep_wrap: bool = False, dots: bool = True) -> str:
        """A name, which may be in round or square brackets."""
        opening = self.peek()
        if opening not in "([":
            return self.word(dots=dots)
        self._at += 1
        word = self.word()
        closing = ")" if opening == "(" else "]"
        self.require(closing)
        return f"{opening}{word}{closing}" if keep_wrap else word

    def type(self, first: str | None = None) -> str:
        """The name of a type, or ``map<key, value>``. ``first`` is its first word if that was read already."""
        word = self.word() if first is None else first
        if word == "map" and self.peek() == "<":
            self.require("<")
            key = self.type()
            self.require(",")
            value = self.type()
            self.require(">")
            return f"map<{key}, {value}>"
        # Whitespace may precede a dot.
        while self.take("."):
            word += f".{self.word()}"
        return word

    def integer(self) -> int:
        text = self.word()
        try:
            value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
        except ValueError:
            value = 1 << 31
        if not -(1 << 31) <= value < 1 << 31 or "_" in text:
            self.fail(f"expected an integer but was {text[:50]}")
        return value

    def string(self) -> str:
        """A quoted string; adjacent strings are concatenated."""
        quote = self.char()
        if quote not in "'\"":
            self._at -= 1
            self.fail("expected quoted string")
        parts: list[str] = []
        while self._at < len(self._text):
            if (plain := _PLAIN.match(self._text, self._at)) is not None:
                parts.append(plain[0])
                self._at = plain.end()
                continue
            char = self._text[self._at]
            self._at += 1
            if char == "\\":
                parts.append(self._escape())
            elif char != quote:
                parts.append(char)
            elif not self.exhausted and self._text[self._at] in "'\"":
                quote = self.char()
            else:
                return "".join(parts)
        self.fail("unterminated string")

    def _escape(self) -> str:
        if self._at >= len(self._text):
            self.fail("unexpected end of file")
        char = self._text[self._at]
        self._at += 1
        if char in "xX":
            match = _HEX.match(self._text, self._at)
            if match is None:
                self.fail("expected a digit after \\x or \\X")
            self._at = match.end()
            return chr(int(match[0], 16))
        if char in "01234567":
            match = _OCTAL.match(self._text, self._at - 1)
            assert match is not None
            self._at = match.end()
            return chr(int(match[0], 8))
        return _ESCAPES.get(char, char)

"""Splits SQL of MySQL and MariaDB into tokens, and provides a cursor over them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from connect.api import DataError

__all__ = ["Cursor", "Token", "tokens"]


class Token(NamedTuple):
    """``kind`` is word, name (in backticks), string, number, bits or sign; ``text`` is without quotes."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words


_TOKEN: Final = re.compile(
    # contents of version comments are read like ordinary SQL
    r"(?P<space>\s+|--(?=\s|$)[^\n]*|\#[^\n]*|/\*M?!\d*|/\*.*?\*/|\*/)"
    r"|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<bits>[bB]'[01]*'|[xX]'[0-9a-fA-F]*'|0x[0-9a-fA-F]+\b|0b[01]+\b)"
    r"|(?P<string>(?:_[a-zA-Z0-9]+\s*|[nN])?(?:'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"))"
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w$])|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[\w$@]+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def _unquoted(text: str) -> str:
    start = min(at for at in (text.find("'"), text.find('"')) if at >= 0)
    quote, body = text[start], text[start + 1 : -1]

    def plain(match: re.Match[str]) -> str:
        return quote if match[0] == quote * 2 else _ESCAPES.get(match[0][1], match[0][1])

    return re.sub(rf"\\.|{quote}{quote}", plain, body, flags=re.DOTALL)


def tokens(sql: str) -> list[Token]:
    made = []
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        text = match[0]
        if kind == "space" or kind is None:
            continue
        if kind == "name":
            text = text[1:-1].replace("``", "`")
        elif kind == "string":
            text = _unquoted(text)
        made.append(Token(kind, text))
    return made


_END: Final = Token("end", "")


class Cursor:
    """A cursor over tokens. Unexpected tokens raise DataError with the position."""

    def __init__(self, sql: str) -> None:
        self._tokens = tokens(sql)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens) or self.next == Token("sign", ";")

    def ahead(self, count: int) -> Token:
        at = self._at + count
        return self._tokens[at] if at < len(self._tokens) else _END

    def take(self) -> Token:
        token = self.next
        if token is _END:
            raise self.wrong("more")
        self._at += 1
        return token

    def words(self, *words: str) -> bool:
        """If all of these words follow, step over them. Returns whether they did."""
        for i, word in enumerate(words):
            if not self.ahead(i).is_word(word):
                return False
        self._at += len(words)
        return True

    def one_of(self, *words: str) -> str | None:
        """If one of these words follows, step over it and return it."""
        if self.next.is_word(*words):
            return self.take().text.upper()
        return None

    def sign(self, text: str) -> bool:
        """If this sign follows, step over it. Returns whether it did."""
        if self.next == Token("sign", text):
            self._at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.sign(text):
            raise self.wrong(repr(text))

    def name(self) -> str:
        token = self.take()
        if token.kind not in ("word", "name", "string"):
            self._at -= 1
            raise self.wrong("a name")
        return token.text

    def number(self) -> int:
        token = self.take()
        if token.kind != "number":
            self._at -= 1
            raise self.wrong("a number")
        return int(float(token.text))

    def skip_parentheses(self) -> None:
        """Step over a pair of parentheses and its contents."""
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "sign":
                depth += {"(": 1, ")": -1}.get(token.text, 0)

    def skip_item(self) -> None:
        """Step to the comma or parenthesis that ends the current item, or to the end."""
        while not self.done and self.next not in (Token("sign", ","), Token("sign", ")")):
            if self.next == Token("sign", "("):
                self.skip_parentheses()
            else:
                self.take()

    def wrong(self, expected: str) -> DataError:
        near = " ".join(token.text for token in self._tokens[max(0, self._at - 3) : self._at + 3])
        return DataError(f"expected {expected} near {near!r}")

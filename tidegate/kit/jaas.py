"""JAAS text: login modules and their options, as in Kafka's ``sasl.jaas.config`` and in JAAS files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["LoginModule", "login_contexts", "login_module"]

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n\r]*|/\*.*?\*/
    |"(?P<double>(?:[^"\\\n\r]|\\.)*)"|'(?P<single>(?:[^'\\\n\r]|\\.)*)'
    |(?P<word>[A-Za-z0-9_$.\-\u00a0-\uffff]+)|(?P<mark>[=;{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LoginModule(NamedTuple):
    name: str
    options: dict[str, str]


class _Token(NamedTuple):
    text: str
    mark: bool


def login_module(text: str) -> LoginModule:
    """Parse ``Class required key="value" ...;``, which must be the only module. Raises ValueError.

    Words and quotes follow Java's ``StreamTokenizer``, which Kafka uses. The text is a secret, so messages do not quote
    values.
    """
    tokens = list(_tokens(text))
    if not tokens:
        raise ValueError("Login module not specified in JAAS config")
    modules = text_end = 0
    module: LoginModule | None = None
    while text_end < len(tokens):
        parsed, text_end = _entry(tokens, text_end)
        module = module or parsed
        modules += 1
    if modules != 1 or module is None:
        raise ValueError(f"JAAS config property contains {modules} login modules, should be 1 module")
    return module


def login_contexts(text: str) -> dict[str, list[LoginModule]]:
    """Parse a JAAS file: ``Name { Class flag key="value" ...; ... };``, repeated. Raises ValueError."""
    tokens = list(_tokens(text))
    by_entry: dict[str, list[LoginModule]] = {}
    at = 0
    while at < len(tokens):
        if tokens[at].mark or tokens[at + 1 : at + 2] != [("{", True)]:
            raise ValueError(f"JAAS file: a name and {{ are wanted, not {tokens[at].text!r}")
        modules = by_entry.setdefault(tokens[at].text, [])
        at += 2
        while at < len(tokens) and tokens[at] != ("}", True):
            module, at = _entry(tokens, at)
            modules.append(module)
        if tokens[at : at + 2] != [("}", True), (";", True)]:
            raise ValueError("JAAS file: an entry is not closed with };")
        at += 2
    return by_entry


def _entry(tokens: list[_Token], at: int) -> tuple[LoginModule, int]:
    name = tokens[at].text
    if tokens[at].mark:
        raise ValueError(f"JAAS config begins with {name!r}; a login module's class is wanted")
    if at + 1 == len(tokens):
        raise ValueError("Login module control flag not specified in JAAS config")
    if tokens[at + 1].text.lower() not in _FLAGS:
        raise ValueError(f"Invalid login module control flag in JAAS config: one of {', '.join(_FLAGS)} is wanted")
    at += 2
    options: dict[str, str] = {}
    while at < len(tokens) and tokens[at] != (";", True):
        equals = tokens[at + 1 : at + 2] == [("=", True)]
        if tokens[at].mark or not equals or at + 2 >= len(tokens) or tokens[at + 2].mark:
            raise ValueError(f"Value not specified for key {tokens[at].text!r} in JAAS config")
        options[tokens[at].text] = tokens[at + 2].text
        at += 3
    if at == len(tokens):
        raise ValueError("JAAS config entry not terminated by semi-colon")
    return LoginModule(name, options), at + 1


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f'JAAS config cannot be read from character {at + 1} on: quote values with "')
        at = match.end()
        if match.lastgroup == "mark":
            yield _Token(match[0], mark=True)
        elif match.lastgroup is not None:
            quoted = match.lastgroup != "word"
            yield _Token(_ESCAPE.sub(_unescaped, match[match.lastgroup]) if quoted else match[0], mark=False)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _LETTERS.get(code, code)

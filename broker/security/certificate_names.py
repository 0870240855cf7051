"""Derives a principal from a client's certificate: the distinguished name in Java's format, and the mapping rules."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["MappingRules", "subject_name"]

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_SPLIT: Final = re.compile(rf"\s*(?:{_RULE}|([^,]*?))\s*(?:,\s*|$)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)
_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The attributes that have names in RFC 2253."""
_ESCAPED: Final = re.compile(r'([,=+<>#;"\\])')


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None for DEFAULT."""
    replacement: str
    case: str


class MappingRules:
    """``ssl.principal.mapping.rules``: the first rule that matches the whole name determines the principal.

    Raises ValueError.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        text = text.strip()
        at = 0
        while at < len(text):
            match = _SPLIT.match(text, at)
            if match is None or match[5]:
                raise ValueError(f"Invalid rule: {text[at:]!r} is neither DEFAULT nor RULE:pattern/replacement/[LU]")
            if match[1]:
                self._rules.append(_Rule(None, "", ""))
            elif match[2] is not None:
                try:
                    self._rules.append(_Rule(re.compile(match[2].replace(r"\/", "/")), match[3], match[4]))
                except re.error as error:
                    raise ValueError(f"Invalid rule: {match[2]!r} is not a regular expression: {error}") from error
            at = match.end()

    def principal(self, name: str) -> str | None:
        """The name of the principal; None if no rule matches."""
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return name
            if pattern.fullmatch(name):
                made = pattern.sub(lambda result, text=replacement: _expand(text, result), name)  # type: ignore[misc]
                return made.lower() if case == "L" else made.upper() if case == "U" else made
        return None


def _expand(replacement: str, match: re.Match[str]) -> str:
    r"""Expand Java's replacement text: ``$1`` is a group, ``\`` escapes the next character, an unknown group stays text."""

    def expanded(reference: re.Match[str]) -> str:
        if reference[1] is not None:
            return reference[1]
        digits = reference[2]
        for length in range(len(digits), 0, -1):
            if int(digits[:length]) <= (match.re.groups or 0):
                return (match[int(digits[:length])] or "") + digits[length:]
        return reference[0]

    return _REFERENCE.sub(expanded, replacement)


def subject_name(certificate: bytes) -> str:
    """The subject of a DER certificate in the format of ``X500Principal.getName()`` (RFC 2253): last part first.

    Raises ValueError.
    """
    from cryptography import x509

    content = _content(x509.load_der_x509_certificate(certificate).subject.public_bytes())
    parts = [
        "+".join(_attribute(_content(attribute)) for attribute in _elements(_content(element)))
        for element in _elements(content)
    ]
    return ",".join(reversed(parts))


def _attribute(content: bytes) -> str:
    oid_der, value_der = _elements(content)
    oid = _oid(_content(oid_der))
    name = _NAMES.get(oid)
    encoding = _ENCODINGS.get(value_der[0])
    if name is None or encoding is None:
        return f"{name or oid}=#{value_der.hex()}"
    text = _ESCAPED.sub(r"\\\1", _content(value_der).decode(encoding, "replace")).replace("\0", r"\00")
    begin, end = len(text) - len(text.lstrip(" ")), len(text.rstrip(" "))
    spaces = (r"\ " * begin, r"\ " * (len(text) - max(begin, end)))
    return f"{name}={spaces[0]}{text[begin:end]}{spaces[1]}"


_ENCODINGS: Final = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be", 0x1C: "utf-32-be"}
"""The string types of ASN.1 by their tags."""


def _elements(content: bytes) -> list[bytes]:
    """The consecutive DER elements."""
    made, at = [], 0
    while at < len(content):
        header, size = _extent(content, at)
        made.append(content[at : at + header + size])
        at += header + size
    return made


def _content(element: bytes) -> bytes:
    header, size = _extent(element, 0)
    return element[header : header + size]


def _extent(data: bytes, at: int) -> tuple[int, int]:
    """(bytes of tag and length, bytes of content)."""
    first = data[at + 1]
    if first < 0x80:
        return 2, first
    count = first & 0x7F
    return 2 + count, int.from_bytes(data[at + 2 : at + 2 + count], "big")


def _oid(content: bytes) -> str:
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))

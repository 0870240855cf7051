"""JSONPath (RFC 9535) by the library jsonpath, with integers of any length."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonpath import JSONPath, JSONPathEnvironment

__all__ = ["compiled_path"]


def compiled_path(path: str) -> JSONPath:
    """Raises JSONPathError of the library, and for some wrong regular expressions and numbers what Python raises."""
    return _environment().compile(path)  # type: ignore[return-value]


@cache
def _environment() -> JSONPathEnvironment:
    import jsonpath
    from jsonpath.filter import IntegerLiteral
    from jsonpath.parse import Parser

    class ExactParser(Parser):
        """The library makes integers of doubles, which have 53 bits: an id of 64 bits would not equal itself."""

        def parse_integer_literal(self, stream: Any) -> Any:
            text = stream.current().value
            literal = super().parse_integer_literal(stream)
            return IntegerLiteral(value=int(text)) if text.lstrip("-").isdecimal() else literal

    class ExactEnvironment(jsonpath.JSONPathEnvironment):
        parser_class = ExactParser

    return ExactEnvironment()

"""Names of topics in the text of a query, so that a misspelt one is told before Spark starts."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["topics_named"]

_TOKENS: Final = re.compile(
    r"""
    (?P<gap> \s+ | --[^\n]* | /\*.*?\*/ )
    | (?P<text> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | `(?P<quoted> (?:[^`]|``)* )`
    | (?P<word> \w+ )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BEFORE_TABLES: Final = frozenset({"FROM", "JOIN"})
_NO_TABLES: Final = frozenset({"IDENTIFIER", "LATERAL", "STREAM", "TABLE", "VALUES"})
"""Words that may follow FROM and JOIN and are no names."""
_UNSURE: Final = frozenset({"EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "WITH"})
"""In a query with one of these, a name after FROM may be a part of a function or a common table expression."""


def topics_named(sql: str) -> list[str]:
    """The names that stand after FROM and JOIN, of a query in which these are tables; none of one that needs a parser to tell.

    A name with dots, which may be a table's in a catalog, is left out, and so is a function. A column that is called ``from`` can
    add a word that is no table.
    """
    tokens = [token for token in _TOKENS.finditer(sql) if token.lastgroup != "gap"]
    words = [token["word"].upper() if token.lastgroup == "word" else "" for token in tokens]
    if not _UNSURE.isdisjoint(words):
        return []
    names = []
    for before, word in enumerate(words[:-1]):
        name, after = tokens[before + 1], tokens[before + 2][0] if before + 2 < len(tokens) else ""
        is_distinct = word == "FROM" and before > 0 and words[before - 1] == "DISTINCT"
        if word not in _BEFORE_TABLES or is_distinct or after in (".", "(", "-"):
            continue
        if name.lastgroup == "quoted":
            names.append(name["quoted"].replace("``", "`"))
        elif name.lastgroup == "word" and words[before + 1] not in _NO_TABLES:
            names.append(name["word"])
    return names

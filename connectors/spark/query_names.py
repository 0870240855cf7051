"""Names of topics in the text of a query: a misspelt one is told before Java starts, and those that a stream reads are marked."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from tidegate.kit.errors import UsageError

__all__ = ["topics_named", "with_streams"]

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


def with_streams(sql: str, streams: Collection[str]) -> str:
    """The query with ``STREAM`` before the tables that are streams.

    Raises UsageError for one of them that the query has elsewhere than after FROM and JOIN, or as a column's qualifier: what it is there
    needs a parser to tell.
    """
    tokens = [token for token in _TOKENS.finditer(sql) if token.lastgroup != "gap"]
    made, copied, marked = "", 0, set[str]()
    for number, token in enumerate(tokens):
        name = token["quoted"] if token.lastgroup == "quoted" else token["word"]
        after = tokens[number + 1][0] if number + 1 < len(tokens) else ""
        if name not in streams or after == ".":
            continue
        before = tokens[number - 1][0].upper() if number else ""
        if before not in _BEFORE_TABLES or not _UNSURE.isdisjoint(
            token["word"].upper() for token in tokens if token.lastgroup == "word" and token["word"].upper() != "WITH"
        ):
            raise UsageError(
                f"the query has {name} in a place that this command can't judge: write the query with each topic after FROM or JOIN, "
                "without functions that have FROM in them"
            )
        made += f"{sql[copied : token.start()]}STREAM "
        copied = token.start()
        marked.add(name)
    if missing := [name for name in streams if name not in marked]:
        raise UsageError(f"the query does not read the topic {missing[0]} by its own name")
    return made + sql[copied:]

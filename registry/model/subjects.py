"""Subject names and their contexts: ``:.staging:orders-value`` is ``orders-value`` in ``.staging``.

The bare context ``:.staging:`` names settings of the whole context; ``:.__GLOBAL:`` those of every context. ``:*:`` in
a prefix means any context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from registry.errors import InvalidContext

__all__ = [
    "ANY_CONTEXT",
    "DEFAULT_CONTEXT",
    "GLOBAL",
    "bare_context",
    "context_of",
    "is_context",
    "is_valid",
    "normalize",
    "prefix_matcher",
    "qualifier",
    "split",
    "subject_matcher",
    "within",
]

DEFAULT_CONTEXT: Final = "."
ANY_CONTEXT: Final = ":*:"
GLOBAL: Final = ":.__GLOBAL:"
"""The name for settings of all contexts."""

_FORBIDDEN: Final = frozenset({"__GLOBAL", "__EMPTY"})


def split(subject: str) -> tuple[str, str]:
    """Context and name. An unqualified subject is in the default context; ``:.ctx`` is a bare context."""
    if not subject.startswith(":."):
        return DEFAULT_CONTEXT, subject
    context, _, name = subject[1:].partition(":")
    return context, name


def context_of(subject: str) -> str:
    return split(subject)[0]


def bare_context(context: str) -> str:
    """A context in front of a subject: ``:.staging:``, and nothing for the default one."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def qualifier(context: str) -> str:
    """The prefix for subjects in a path's context (``staging``, ``.staging``, ``:.staging:``).

    Raises InvalidContext.
    """
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise InvalidContext(name)
    return bare_context(name if name.startswith(".") else f".{name}")


def normalize(subject: str) -> str:
    """The normal form of a subject: without the default context, other contexts between colons."""
    if not subject.startswith(":."):
        return subject
    context, name = split(subject)
    return bare_context(context) + name


def is_context(subject: str | None) -> bool:
    """Whether settings under this name apply to a whole context; None is the default context."""
    return subject is None or not split(subject)[1]


def is_valid(subject: str, *, for_settings: bool = False) -> bool:
    """Whether a subject is valid for schemas, or with ``for_settings`` for a config or mode."""
    if any(char < " " or "\x7f" <= char < "\xa0" for char in subject):
        return False
    context, name = split(subject)
    if name in _FORBIDDEN:
        return False
    return for_settings or bare_context(context) != GLOBAL


def within(parent: str, subject: str) -> str:
    """The subject that a name refers to from ``parent``: without a context, it is in the parent's."""
    name = normalize(subject)
    return name if context_of(name) != DEFAULT_CONTEXT else bare_context(context_of(parent)) + name


def prefix_matcher(prefix: str) -> Callable[[str], bool]:
    """A test whether a subject matches a prefix: ``:*:a`` in any context, ``:.c:a`` in that one, ``a`` in the default
    one.
    """
    if prefix.startswith(ANY_CONTEXT):
        name_prefix = prefix[len(ANY_CONTEXT) :]
        return lambda subject: split(subject)[1].startswith(name_prefix)
    context, name = split(prefix)
    if prefix.startswith(":.") and not prefix.endswith(":") and not name:
        return lambda subject: context_of(subject).startswith(context)  # the prefix ends within the context

    def matches(subject: str) -> bool:
        own_context, rest = split(subject)
        return own_context == context and rest.startswith(name)

    return matches


def subject_matcher(subject: str | None) -> Callable[[str], bool]:
    """A test for the subjects that a name covers: itself, those of a bare context, or all (None and ``:.__GLOBAL:``)."""
    if subject is None or subject == GLOBAL:
        return lambda _: True
    context, name = split(subject)
    if name:
        return subject.__eq__
    return lambda other: context_of(other) == context

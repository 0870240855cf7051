"""Subject names and the contexts they may live in: ``:.staging:orders-value`` is ``orders-value`` in ``.staging``.

The bare context ``:.staging:`` names settings of the whole context; ``:.__GLOBAL:`` those of every context. ``:*:`` in a prefix is
any context.
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
"""Where settings of every context stand."""

_FORBIDDEN: Final = frozenset({"__GLOBAL", "__EMPTY"})


def split(subject: str) -> tuple[str, str]:
    """Context and name; a subject that is not qualified lives in the default context, ``:.ctx`` is a bare context."""
    if not subject.startswith(":."):
        return DEFAULT_CONTEXT, subject
    context, _, name = subject[1:].partition(":")
    return context, name


def context_of(subject: str) -> str:
    return split(subject)[0]


def bare_context(context: str) -> str:
    """How a context is written before a subject: ``:.staging:``, and nothing for the default one."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def qualifier(context: str) -> str:
    """What a context in a path (``staging``, ``.staging``, ``:.staging:``) puts before subjects; raises InvalidContext."""
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise InvalidContext(name)
    return bare_context(name if name.startswith(".") else f".{name}")


def normalize(subject: str) -> str:
    """The one spelling of a subject: the default context is left out, others stand between colons."""
    if not subject.startswith(":."):
        return subject
    context, name = split(subject)
    return bare_context(context) + name


def is_context(subject: str | None) -> bool:
    """Whether settings under this name are those of a whole context; None is the default context."""
    return subject is None or not split(subject)[1]


def is_valid(subject: str, *, for_settings: bool = False) -> bool:
    """Whether a schema, or with ``for_settings`` a config or mode, can stand under the subject."""
    if any(char < " " or "\x7f" <= char < "\xa0" for char in subject):
        return False
    context, name = split(subject)
    if name in _FORBIDDEN:
        return False
    return for_settings or bare_context(context) != GLOBAL


def within(parent: str, subject: str) -> str:
    """The subject that a name means beside ``parent``: unless it has a context of its own, one of the parent's."""
    name = normalize(subject)
    return name if context_of(name) != DEFAULT_CONTEXT else bare_context(context_of(parent)) + name


def prefix_matcher(prefix: str) -> Callable[[str], bool]:
    """Whether a subject falls under a prefix: ``:*:a`` in any context, ``:.c:a`` in that one, ``a`` in the default one."""
    if prefix.startswith(ANY_CONTEXT):
        name_prefix = prefix[len(ANY_CONTEXT) :]
        return lambda subject: split(subject)[1].startswith(name_prefix)
    context, name = split(prefix)
    if prefix.startswith(":.") and not prefix.endswith(":") and not name:
        return lambda subject: context_of(subject).startswith(context)  # the context itself is cut short

    def matches(subject: str) -> bool:
        own_context, rest = split(subject)
        return own_context == context and rest.startswith(name)

    return matches


def subject_matcher(subject: str | None) -> Callable[[str], bool]:
    """Which subjects a name stands for: itself, those of a bare context, or all (None and ``:.__GLOBAL:``)."""
    if subject is None or subject == GLOBAL:
        return lambda _: True
    context, name = split(subject)
    if name:
        return subject.__eq__
    return lambda other: context_of(other) == context

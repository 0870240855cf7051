"""Subject names and the contexts they may live in: ``:.staging:orders-value`` is ``orders-value`` in ``.staging``."""

from __future__ import annotations

from typing import Final

__all__ = ["DEFAULT_CONTEXT", "context_of", "context_subject", "is_valid", "normalize", "within"]

DEFAULT_CONTEXT: Final = "."
_FORBIDDEN: Final = frozenset({"__GLOBAL", "__EMPTY"})


def _split(subject: str) -> tuple[str, str]:
    """Context and name; a subject that is not qualified lives in the default context."""
    if subject.startswith(":.") and (end := subject.find(":", 2)) > 0:
        return subject[1:end], subject[end + 1 :]
    return DEFAULT_CONTEXT, subject


def context_of(subject: str) -> str:
    return _split(subject)[0]


def normalize(subject: str) -> str:
    """The one spelling of a subject: the default context is left out."""
    context, name = _split(subject)
    return name if context == DEFAULT_CONTEXT else subject


def context_subject(subject: str) -> str | None:
    """Where settings of the whole context stand (``:.staging:``), None for the default context (the global ones)."""
    context = context_of(subject)
    return None if context == DEFAULT_CONTEXT else f":{context}:"


def is_valid(subject: str, *, context_only: bool = False) -> bool:
    """Whether a schema can be registered under the subject; ``context_only`` allows a bare context, for settings."""
    name = _split(subject)[1]
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in subject) or name in _FORBIDDEN:
        return False
    return bool(name) or context_only


def within(context: str, subject: str) -> str:
    """The subject that a name means inside a context: a name without a context of its own belongs to that one."""
    if context == DEFAULT_CONTEXT or subject.startswith(":."):
        return normalize(subject)
    return f":{context}:{subject}"

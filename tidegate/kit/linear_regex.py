"""Regular expressions from untrusted sources: RE2 matches them in time linear in the text (github.com/google/re2)."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["PatternError", "compiled"]


_MOST_CHARACTERS: Final = 32_767
"""The longest pattern: RE2 takes up to 20 us per character to compile it, or to find it too large."""


class PatternError(ValueError):
    """RE2 refuses a pattern; the text says why."""


def compiled(pattern: str | bytes, *, max_bytes: int | None = None) -> Any:
    """RE2's object for a pattern in RE2's syntax; writes nothing to stderr.

    It uses at most ``max_bytes`` of memory (RE2's own limit by default). Raises PatternError.
    """
    if len(pattern) > _MOST_CHARACTERS:
        raise PatternError(f"the pattern has {len(pattern)} characters; it may have {_MOST_CHARACTERS}")
    import re2  # slow to import and rarely needed

    options = re2.Options()
    options.log_errors = False
    if max_bytes is not None:
        options.max_mem = max_bytes
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else ""
        raise PatternError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)) from error

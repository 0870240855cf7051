"""Regular expressions of JSON Schemas, matched in time that grows with the text alone.

jsonschema matches with Python's ``re``, for which ``(a+)+$`` and thirty letters take minutes; the schema may be a stranger's.
RE2 takes no such pattern worse than any other, and knows neither lookaround nor references back.
"""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType
from typing import Any, Final

from registry.errors import InvalidSchema
from tidegate.kit.linear_regex import PatternError, compiled

__all__ = ["bounded"]

_MOST_BYTES: Final = 1 << 20
"""Of a compiled pattern."""


class _Re2:
    """What jsonschema uses of ``re``."""

    @staticmethod
    def search(pattern: str, text: str) -> bool:
        return _compiled(pattern).search(text.encode("utf-8", "replace")) is not None


@functools.lru_cache(maxsize=1000)
def _compiled(pattern: str) -> Any:
    try:
        return compiled(pattern.encode("utf-8", "replace"), max_bytes=_MOST_BYTES)
    except PatternError as error:
        raise InvalidSchema(
            f"Invalid schema of type JSON, details: the pattern {pattern[:200]!r} cannot be matched in bounded time ({error}): RE2 has "
            "no lookaround and no references back"
        ) from error


@functools.cache
def bounded(kind: Any) -> Any:
    """A validator class of jsonschema whose patterns are matched by RE2. Values then raise InvalidSchema where a pattern is not RE2's."""
    from jsonschema.validators import extend

    modules = _modules()
    return extend(
        kind,
        {
            keyword: getattr(modules[check.__module__], check.__name__)
            for keyword, check in kind.VALIDATORS.items()
            if keyword in _WITH_PATTERNS and check.__module__ in modules
        },
    )


_WITH_PATTERNS: Final = frozenset({"additionalProperties", "pattern", "patternProperties", "unevaluatedProperties"})


@functools.cache
def _modules() -> dict[str, ModuleType]:
    """jsonschema's modules of keywords, loaded once more with RE2 for their ``re``: it has no place to give it one.

    tests/registry/formats/json_schema/test_patterns.py is the contract with their private names.
    """
    utils = _again("jsonschema._utils")
    keywords, legacy = _again("jsonschema._keywords"), _again("jsonschema._legacy_keywords")
    for module in (keywords, legacy):
        for name in ("find_additional_properties", "find_evaluated_property_keys_by_schema"):
            if getattr(getattr(module, name, None), "__module__", "") == utils.__name__:
                setattr(module, name, getattr(utils, name))
    return {module.__name__: module for module in (keywords, legacy)}


def _again(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__["re"] = _Re2
    return module

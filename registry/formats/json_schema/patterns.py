"""Regular expressions of JSON Schemas, matched in time linear in the text.

jsonschema uses Python's ``re``, which takes minutes for ``(a+)+$`` and thirty letters, and schemas may be untrusted.
RE2 is linear for all patterns, but has no lookaround and no backreferences.
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
"""The size limit of a compiled pattern."""


class _Re2:
    """The part of ``re`` that jsonschema uses."""

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
    """A validator class of jsonschema that matches patterns with RE2.

    Validation raises InvalidSchema for a pattern that RE2 can't parse.
    """
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
    """Second copies of jsonschema's keyword modules with RE2 as their ``re``, because jsonschema has no option for
    that.

    tests/registry/formats/json_schema/test_patterns.py tests their private names.
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

"""A connector's configuration as a form, as JSON, and as a difference; secrets stay on the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.kit.errors import UsageError
from tidegate.kit.scrubbing import HIDDEN, masked

__all__ = [
    "PREFIX",
    "Change",
    "Field",
    "Group",
    "changes",
    "config_of_fields",
    "config_of_json",
    "form_groups",
    "shown_config",
]

PREFIX: Final = "key:"
"""Before the name of a key, the name of its field."""
OTHERS: Final = "others"
_IMPORTANCE: Final = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}
_CHANGES_KEYS: Final = re.compile(
    r"connector\.class|(key|value|header)\.converter|transforms|predicates|(transforms|predicates)\.[^.]+\.type"
)
"""Keys whose value decides which keys there are."""
_PLACEHOLDER: Final = re.compile(r"\$\{[^}]+\}")
_GENERAL: Final = frozenset(
    ("Common", "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support", "offsets.topic")
)
"""Groups of keys that every connector has; the plugin's stand before them."""
_MOST_RECOMMENDED: Final = 200


@dataclass(frozen=True)
class Field:
    """One key of a configuration in a form."""

    name: str
    label: str
    doc: str
    kind: str
    """text, number, boolean or secret."""
    value: str
    """As it is shown: a secret is not."""
    default: str
    required: bool
    recommended: tuple[str, ...]
    errors: tuple[str, ...]
    is_set: bool
    changes_keys: bool
    """Whether its value decides which other keys there are."""


@dataclass(frozen=True)
class Group:
    name: str
    fields: tuple[Field, ...]

    @property
    def is_open(self) -> bool:
        """Whether something in it is set, wrong or needed."""
        return any(field.is_set or field.errors or field.required for field in self.fields)

    @property
    def set_count(self) -> int:
        return sum(field.is_set for field in self.fields)


@dataclass(frozen=True)
class Change:
    """One key that differs; None where it is not there."""

    key: str
    before: str | None
    after: str | None


def form_groups(
    verdict: Mapping[str, Any], config: Mapping[str, str], secret: Iterable[str]
) -> tuple[list[Group], str]:
    """The groups of a form, from ``PUT .../config/validate``, and keys that nobody declares as ``key=value`` lines."""
    hidden = set(secret)
    by_group: dict[str, list[tuple[int, int, Field]]] = {name: [] for name in verdict["groups"]}
    declared = set()
    for entry in verdict["configs"]:
        definition, value = entry["definition"], entry["value"]
        name = definition["name"]
        declared.add(name)
        if name == "name" or not value.get("visible", True):
            continue
        field = _field(definition, value, config.get(name), hidden)
        rank = _IMPORTANCE.get(definition["importance"], 2)
        by_group.setdefault(definition["group"] or "", []).append((rank, definition["order_in_group"] or 0, field))
    plugin = config.get("connector.class", "").rpartition(".")[2] or "The connector"
    groups = [
        Group(name or plugin, tuple(field for *_, field in sorted(fields, key=lambda item: item[:2])))
        for name, fields in sorted(by_group.items(), key=lambda item: (item[0] in _GENERAL, bool(item[0])))
        if fields
    ]
    others = [f"{key}={_shown(key, value, hidden)}" for key, value in config.items() if key not in declared]
    return groups, "\n".join(others)


def _field(definition: Mapping[str, Any], value: Mapping[str, Any], text: str | None, hidden: set[str]) -> Field:
    name, kind = definition["name"], definition["type"]
    is_secret = kind == "PASSWORD" and not _PLACEHOLDER.fullmatch((text or "").strip())
    default = definition["default_value"]
    return Field(
        name=name,
        label=definition["display_name"] or name,
        doc=definition["documentation"] or "",
        kind="secret"
        if is_secret
        else {"BOOLEAN": "boolean", "INT": "number", "LONG": "number", "SHORT": "number"}.get(kind, "text"),
        value="" if is_secret or text is None else _shown(name, text, hidden),
        default="" if default is None or kind == "PASSWORD" else str(default),
        required=bool(definition["required"]),
        recommended=tuple(map(str, value["recommended_values"][:_MOST_RECOMMENDED])),
        errors=tuple(value["errors"]),
        is_set=text is not None,
        changes_keys=_CHANGES_KEYS.fullmatch(name) is not None,
    )


def shown_config(config: Mapping[str, str], secret: Iterable[str]) -> dict[str, str]:
    """A configuration without secrets. What ``config_of_json`` gets back unchanged keeps its value."""
    hidden = set(secret)
    return {key: _shown(key, value, hidden) for key, value in sorted(config.items())}


def _shown(key: str, value: str, secret: set[str]) -> str:
    if _PLACEHOLDER.fullmatch(value.strip()):
        return value
    return HIDDEN if key in secret and value else masked(key, value)


def config_of_fields(form: Mapping[str, str], current: Mapping[str, str], secret: Iterable[str]) -> dict[str, str]:
    """The configuration of a form's fields. An empty field is no key; an empty secret keeps its value.

    Raises UsageError for a line of other keys that is none.
    """
    hidden = set(secret)
    made: dict[str, str] = {}
    for field, text in form.items():
        if not field.startswith(PREFIX):
            continue
        key = field.removeprefix(PREFIX)
        text = text.replace("\r\n", "\n")
        if text:
            made[key] = _kept(key, text, current, hidden)
        elif key in hidden and current.get(key) and not _PLACEHOLDER.fullmatch(current[key].strip()):
            made[key] = current[key]
    for line in form.get(OTHERS, "").splitlines():
        if not line.strip():
            continue
        key, equals, text = line.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{line!r} is no KEY=VALUE: write one key in each line of the other keys")
        made[key.strip()] = _kept(key.strip(), text.strip(), current, hidden)
    return made


def config_of_json(text: str, current: Mapping[str, str], secret: Iterable[str]) -> dict[str, str]:
    """The configuration of a JSON text. Raises UsageError with the position of an error."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageError(f"This is not JSON: {error}") from error
    except RecursionError:
        raise UsageError("This is not a configuration: it is nested too deep") from None
    if isinstance(document, dict) and isinstance(document.get("config"), dict):
        document = document["config"]  # the form of POST /connectors
    if not isinstance(document, dict):
        raise UsageError('A configuration is a JSON object: {"connector.class": "...", ...}')
    hidden, made = set(secret), {}
    for key, value in document.items():
        if isinstance(value, dict | list):
            raise UsageError(f"{key} is {json.dumps(value)[:80]}: values are texts, numbers, true or false")
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        made[key] = _kept(key, text, current, hidden)
    return made


def _kept(key: str, text: str, current: Mapping[str, str], secret: set[str]) -> str:
    """The value that runs if the text is how it is shown."""
    known = current.get(key)
    return known if known is not None and text == _shown(key, known, secret) else text


def changes(before: Mapping[str, str], after: Mapping[str, str], secret: Iterable[str]) -> list[Change]:
    """The keys that differ, without secrets: a changed secret is shown as hidden before and hidden after."""
    hidden = set(secret)
    return [
        Change(
            key,
            _shown(key, before[key], hidden) if key in before else None,
            _shown(key, after[key], hidden) if key in after else None,
        )
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]

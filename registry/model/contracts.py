"""The data contract of a schema: metadata (tags, properties) and rule sets.

Both are stored as JSON text in Confluent's order of members, so that equal ones have equal text. None means absent,
which differs from empty. The registry stores and returns rules; serializers execute them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from registry.errors import InvalidBody, InvalidRuleSet

__all__ = [
    "CONFLUENT_VERSION",
    "check_rules",
    "confluent_version",
    "has_rule_type",
    "hashed",
    "merge_metadata",
    "merge_rule_sets",
    "property_of",
    "read_metadata",
    "read_rule_set",
    "with_confluent_version",
    "without_confluent_version",
    "without_rules",
]

CONFLUENT_VERSION: Final = "confluent:version"
"""The property with a schema's own version number."""

_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")
_KINDS: Final = ("TRANSFORM", "CONDITION")
_MIGRATION_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN_MODES: Final = ("WRITE", "READ", "WRITEREAD")
_ENVIRONMENTS: Final = ("ALL", "CLIENT", "GATEWAY", "SERVER", "NONE")
_MAX_NAME: Final = 256


# -- reading


def read_metadata(value: object, where: str = "metadata") -> str | None:
    """Metadata of a request or a record. Unknown members are ignored. Raises InvalidBody."""
    if value is None:
        return None
    members = _object(value, where)
    tags = _mapping(members.get("tags"), f"{where}.tags")
    properties = _mapping(members.get("properties"), f"{where}.properties")
    return _metadata_text(
        {name: _texts(tags[name], f"{where}.tags.{name}") for name in tags},
        {name: _scalar(properties[name], f"{where}.properties.{name}") for name in properties},
        _texts(members.get("sensitive"), f"{where}.sensitive"),
    )


def _metadata_text(tags: Mapping[str, Sequence[str]], properties: Mapping[str, str], sensitive: Sequence[str]) -> str:
    value: dict[str, Any] = {}
    if tags:
        value["tags"] = {name: sorted(set(tags[name])) for name in sorted(tags)}
    if properties:
        value["properties"] = {name: properties[name] for name in sorted(properties)}
    if sensitive:
        value["sensitive"] = sorted(set(sensitive))
    return _text(value)


def read_rule_set(value: object, where: str = "ruleSet") -> str | None:
    """A rule set of a request or a record. Raises InvalidBody. ``check_rules`` validates the rules."""
    if value is None:
        return None
    members = _object(value, where)
    read: dict[str, Any] = {}
    for kind in _RULE_LISTS:
        rules = _list(members.get(kind), f"{where}.{kind}")
        if rules:
            read[kind] = [_rule(rule, f"{where}.{kind}[{n}]") for n, rule in enumerate(rules)]
    if members.get("enableAt") is not None:
        read["enableAt"] = _one_of(members["enableAt"], _ENVIRONMENTS, f"{where}.enableAt")
    return _text(read)


def _rule(value: object, where: str) -> dict[str, Any]:
    members = _object(value, where)
    params = _mapping(members.get("params"), f"{where}.params")
    modes = (*_MIGRATION_MODES, *_DOMAIN_MODES)
    read: dict[str, Any] = {
        "name": _optional(members.get("name"), f"{where}.name"),
        "doc": _optional(members.get("doc"), f"{where}.doc"),
        "kind": _one_of("TRANSFORM" if members.get("kind") is None else members["kind"], _KINDS, f"{where}.kind"),
        "mode": _one_of("WRITEREAD" if members.get("mode") is None else members["mode"], modes, f"{where}.mode"),
        "type": _optional(members.get("type"), f"{where}.type"),
        "tags": sorted(set(_texts(members.get("tags"), f"{where}.tags"))),
        "params": {name: _scalar(params[name], f"{where}.params.{name}") for name in sorted(params)},
        "expr": _optional(members.get("expr"), f"{where}.expr"),
        "onSuccess": _optional(members.get("onSuccess"), f"{where}.onSuccess"),
        "onFailure": _optional(members.get("onFailure"), f"{where}.onFailure"),
    }
    kept = {name: item for name, item in read.items() if item or name in ("kind", "mode")}
    return {**kept, "disabled": members.get("disabled") is True}


def check_rules(rule_set: str | None) -> None:
    """Raise InvalidRuleSet if a rule has no valid name or type, or a mode that does not belong in its list."""
    for kind, rules in _rules(rule_set):
        names: set[str] = set()
        for rule in rules:
            name = rule.get("name")
            if name in names:
                raise InvalidRuleSet(f"Found rule with duplicate name '{name}'")
            _check_rule(rule)
            names.add(str(name))
            if kind == "migrationRules" and rule["mode"] not in _MIGRATION_MODES:
                raise InvalidRuleSet("Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")
            if kind != "migrationRules" and rule["mode"] not in _DOMAIN_MODES:
                raise InvalidRuleSet(f"{kind[:-5].capitalize()} rules can only be WRITE, READ, WRITEREAD")


def _check_rule(rule: Mapping[str, Any]) -> None:
    name = rule.get("name")
    if name is None:
        raise InvalidRuleSet("Missing rule name")
    if len(name) > _MAX_NAME:
        raise InvalidRuleSet("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise InvalidRuleSet(f"Illegal initial character in rule name: {name}")
    if not all(char.isalnum() or char in "_-" for char in name):
        raise InvalidRuleSet(f"Illegal character in rule name: {name}")
    if rule.get("type") is None:
        raise InvalidRuleSet("Missing rule type")
    several = any("," in rule.get(action, "") for action in ("onSuccess", "onFailure"))
    if several and rule["mode"] not in ("WRITEREAD", "UPDOWN"):
        raise InvalidRuleSet("Multiple actions only valid with WRITEREAD and UPDOWN")


# -- queries


def property_of(metadata: str | None, name: str) -> str | None:
    """One property of metadata."""
    if metadata is None:
        return None
    value: str | None = json.loads(metadata).get("properties", {}).get(name)
    return value


def confluent_version(metadata: str | None) -> int | None:
    """The version that metadata claims for its schema; None if there is none or it is not a number."""
    claimed = property_of(metadata, CONFLUENT_VERSION)
    try:
        return int(claimed) if claimed is not None and len(claimed) <= 11 else None
    except ValueError:
        return None


def has_rule_type(rule_set: str | None, type_: str) -> bool:
    return any(rule.get("type") == type_ for _, rules in _rules(rule_set) for rule in rules)


def hashed(metadata: str | None, rule_set: str | None) -> Iterator[str]:
    """The input of the hash behind a schema's guid, in Confluent's order; ``\\x01`` distinguishes empty from absent."""
    if metadata is not None:
        yield "\x01"
        value = json.loads(metadata)
        for name, tags in value.get("tags", {}).items():
            yield from (name, *tags)
        for name, text in value.get("properties", {}).items():
            yield from (name, text)
        yield from value.get("sensitive", ())
    if rule_set is not None:
        yield "\x01"
        for _, rules in _rules(rule_set):
            for rule in rules:
                yield from (rule.get(name, "") for name in ("name", "doc", "kind", "mode", "type"))
                yield from rule.get("tags", ())
                for name, text in rule.get("params", {}).items():
                    yield from (name, text)
                yield from (rule.get(name, "") for name in ("expr", "onSuccess", "onFailure"))
                if rule["disabled"]:
                    yield "\x01"
        yield json.loads(rule_set).get("enableAt", "")


def _rules(rule_set: str | None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    value = {} if rule_set is None else json.loads(rule_set)
    for kind in _RULE_LISTS:
        yield kind, value.get(kind, [])


# -- changing


def merge_metadata(old: str | None, new: str | None) -> str | None:
    """Merge ``new`` into ``old``: a tag or property of the same name is replaced, sensitive names are combined."""
    if old is None or new is None:
        return new if old is None else old
    first, second = json.loads(old), json.loads(new)
    return _metadata_text(
        {**first.get("tags", {}), **second.get("tags", {})},
        {**first.get("properties", {}), **second.get("properties", {})},
        [*first.get("sensitive", ()), *second.get("sensitive", ())],
    )


def merge_rule_sets(old: str | None, new: str | None) -> str | None:
    """Append ``new`` to ``old``, list by list; a rule of the same name is replaced."""
    if old is None or new is None:
        return new if old is None else old
    first, second = json.loads(old), json.loads(new)
    merged: dict[str, Any] = {}
    for kind in _RULE_LISTS:
        replaced = {rule.get("name") for rule in second.get(kind, ())}
        kept = [rule for rule in first.get(kind, ()) if rule.get("name") not in replaced]
        if rules := [*kept, *second.get(kind, ())]:
            merged[kind] = rules
    if enable_at := second.get("enableAt") or first.get("enableAt"):
        merged["enableAt"] = enable_at
    return _text(merged)


def without_rules(rule_set: str | None, names: Sequence[str]) -> str | None:
    """The rule set without the rules of these names."""
    if rule_set is None:
        return None
    value = json.loads(rule_set)
    for kind in _RULE_LISTS:
        rules = [rule for rule in value.pop(kind, ()) if rule.get("name") not in names]
        if rules:
            value[kind] = rules
    return _text({name: value[name] for name in (*_RULE_LISTS, "enableAt") if name in value})


def with_confluent_version(metadata: str | None, version: int) -> str:
    value = {} if metadata is None else json.loads(metadata)
    properties = {**value.get("properties", {}), CONFLUENT_VERSION: str(version)}
    return _metadata_text(value.get("tags", {}), properties, value.get("sensitive", ()))


def without_confluent_version(metadata: str | None) -> str | None:
    if metadata is None:
        return None
    value = json.loads(metadata)
    properties = {name: text for name, text in value.get("properties", {}).items() if name != CONFLUENT_VERSION}
    return _metadata_text(value.get("tags", {}), properties, value.get("sensitive", ()))


# -- JSON


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _shown(value: object) -> str:
    return json.dumps(value)[:100]


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidBody(f"{where} must be an object, not {_shown(value)}")
    return value


def _mapping(value: object, where: str) -> dict[str, Any]:
    return {} if value is None else _object(value, where)


def _list(value: object, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidBody(f"{where} must be a list, not {_shown(value)}")
    return value


def _texts(value: object, where: str) -> list[str]:
    return [_scalar(item, where) for item in _list(value, where)]


def _optional(value: object, where: str) -> str | None:
    return None if value is None else _scalar(value, where)


def _scalar(value: object, where: str) -> str:
    """Text; numbers and booleans become their text, as in Confluent's parser."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise InvalidBody(f"{where} must be text, not {_shown(value)}")


def _one_of(value: object, names: Sequence[str], where: str) -> str:
    if value not in names:
        raise InvalidBody(f"{where} must be one of {', '.join(names)}, not {_shown(value)}")
    return str(value)

"""Compatibility configs and modes: where they are set, and which are effective for a subject.

Settings can be set on a subject, a whole context (``:.staging:``), the default context (no name) or ``:.__GLOBAL:``
(all contexts).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from registry.errors import InvalidBody, InvalidCompatibilityLevel, InvalidMode, OperationNotPermitted
from registry.formats.compatibility import Level
from registry.model.contracts import check_rules, read_metadata, read_rule_set
from registry.model.state import State
from registry.model.subjects import GLOBAL, bare_context, context_of

__all__ = ["SETTINGS", "Mode", "Scoped", "Setting", "Settings", "read_config", "read_mode"]


class Mode(Enum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """READONLY for everything below, whatever is set there."""
    IMPORT = "IMPORT"
    """Schemas come with their ids and versions, and are not checked for compatibility."""
    FORWARD = "FORWARD"
    """Like IMPORT, for everything: another registry writes and forwards its writes. Only for ``:.__GLOBAL:``."""

    @property
    def imports(self) -> bool:
        return self in (Mode.IMPORT, Mode.FORWARD)

    @property
    def read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)


# -- reading requests


def _flag(value: object, name: str) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise InvalidBody(f"{name} must be true or false, not {json.dumps(value)[:100]}")
    return value


def _text(value: object, name: str) -> str | None:
    if not isinstance(value, str):
        raise InvalidBody(f"{name} must be text, not {json.dumps(value)[:100]}")
    return value or None


def _level(value: object, _: str) -> str | None:
    if isinstance(value, str) and value.upper() in Level.__members__:
        return value.upper()
    raise InvalidCompatibilityLevel


def _policy(value: object, name: str) -> str | None:
    text = (_text(value, name) or "").upper()
    return text if text in ("STRICT", "LENIENT") else None


def _metadata(value: object, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(read_metadata(value, name) or "{}")
    return read


def _rules(value: object, name: str) -> dict[str, Any]:
    text = read_rule_set(value, name) or "{}"
    check_rules(text)
    read: dict[str, Any] = json.loads(text)
    return read


@dataclass(frozen=True, slots=True)
class Setting:
    """One member of a config: its name in requests, its name in the log and in answers, and its parser."""

    name: str
    read: Callable[[object, str], Any]
    stored: str = ""
    inherited: bool = True
    """Whether a subject with its own config inherits this setting from the global config."""

    @property
    def key(self) -> str:
        return self.stored or self.name


SETTINGS: Final = (
    Setting("alias", _text, inherited=False),
    Setting("aliasForDeks", _text, inherited=False),
    Setting("normalize", _flag),
    Setting("validateFields", _flag),
    Setting("validateNewSchemas", _flag),
    Setting("validateRules", _flag),
    Setting("compatibility", _level, "compatibilityLevel", inherited=False),
    Setting("compatibilityPolicy", _policy),
    Setting("compatibilityGroup", _text),
    Setting("defaultMetadata", _metadata, inherited=False),
    Setting("overrideMetadata", _metadata, inherited=False),
    Setting("defaultRuleSet", _rules, inherited=False),
    Setting("overrideRuleSet", _rules, inherited=False),
)
"""All members of a config, in the order of Confluent's answers."""


def read_config(body: Mapping[str, Any]) -> dict[str, Any]:
    """The config in a PUT /config, with the log's names. None removes a setting. Raises a 400 or 422."""
    return {
        setting.key: None if body[setting.name] is None else setting.read(body[setting.name], setting.name)
        for setting in SETTINGS
        if setting.name in body
    }


def read_mode(value: object) -> Mode | None:
    """The mode in a request; None for null. Raises InvalidMode."""
    if value is None:
        return None
    if isinstance(value, str) and value.upper() in Mode.__members__:
        return Mode[value.upper()]
    raise InvalidMode


# -- effective settings


@dataclass(frozen=True, slots=True)
class Scoped:
    """The effective config of a subject."""

    level: Level
    normalize: bool
    validate_fields: bool
    validate_new: bool
    lenient: bool
    group: str | None
    default_metadata: str | None
    override_metadata: str | None
    default_rules: str | None
    override_rules: str | None

    @property
    def fills_in(self) -> bool:
        """Whether registered schemas get metadata or rules that their clients did not send."""
        fields = (self.default_metadata, self.override_metadata, self.default_rules, self.override_rules)
        return any(text is not None for text in fields)


class Settings:
    """Looks settings up: on the subject, then its context, then all contexts, then the server's default."""

    def __init__(self, state: State, default_level: Level) -> None:
        self._state = state
        self._default = default_level
        self._cached: dict[str | None, Scoped] = {}
        self._kept_at = -1

    # -- configs

    def config(self, scope: str | None) -> dict[str, Any] | None:
        """The config set exactly there, in the order of answers.

        The global config and that of all contexts always exist.
        """
        configured = self._state.configs.get(scope)
        if configured is None:
            return {"compatibilityLevel": self._default.value} if scope in (None, GLOBAL) else None
        shown = {**configured, "compatibilityLevel": configured.get("compatibilityLevel") or self._default.value}
        return ordered(shown)

    def config_in_scope(self, subject: str | None) -> dict[str, Any]:
        """The subject's own config, completed from the global one; or its context's config if it has none."""
        configured = self._state.configs.get(subject)
        if configured is not None and subject is not None:
            above = self.config(None) or {}
            taken = {s.key: above[s.key] for s in SETTINGS if s.inherited and s.key in above}
            return ordered({**taken, **(self.config(subject) or {})})
        for scope in _scope(subject):
            if scope in self._state.configs:
                return self.config(scope) or {}
        return {"compatibilityLevel": self._default.value}

    def scoped(self, subject: str) -> Scoped:
        """The effective config, parsed. Invalid values written by another registry count as unset."""
        if self._kept_at != self._state.revision:
            self._cached, self._kept_at = {}, self._state.revision
        scoped = self._cached.get(subject)
        if scoped is None:
            scoped = self._cached[subject] = self._understood(self.config_in_scope(subject))
        return scoped

    def _understood(self, config: Mapping[str, Any]) -> Scoped:
        level, group = config["compatibilityLevel"], config.get("compatibilityGroup")
        return Scoped(
            level=Level[level] if isinstance(level, str) and level in Level.__members__ else self._default,
            normalize=config.get("normalize") is True,
            validate_fields=config.get("validateFields") is True,
            validate_new=config.get("validateNewSchemas") is not False,
            lenient=config.get("compatibilityPolicy") == "LENIENT",
            group=group if isinstance(group, str) else None,
            default_metadata=_tolerant(read_metadata, config.get("defaultMetadata")),
            override_metadata=_tolerant(read_metadata, config.get("overrideMetadata")),
            default_rules=_tolerant(read_rule_set, config.get("defaultRuleSet")),
            override_rules=_tolerant(read_rule_set, config.get("overrideRuleSet")),
        )

    def alias(self, subject: str) -> str | None:
        """The real subject if this subject is an alias."""
        alias = (self._state.configs.get(subject) or {}).get("alias")
        return alias if isinstance(alias, str) and alias else None

    # -- modes

    def mode(self, scope: str | None) -> Mode | None:
        """The mode set exactly there; READWRITE by default for the global mode and for all contexts."""
        value = self._state.modes.get(scope)
        if value is None:
            return Mode.READWRITE if scope in (None, GLOBAL) else None
        # An unknown mode of a newer registry means that clients do not write here.
        return Mode[value] if value in Mode.__members__ else Mode.READONLY

    def mode_in_scope(self, subject: str | None) -> Mode:
        scopes = [scope for scope in _scope(subject) if scope in self._state.modes]
        modes = [mode for scope in scopes if (mode := self.mode(scope)) is not None]
        return Mode.READONLY_OVERRIDE if Mode.READONLY_OVERRIDE in modes else next(iter(modes), Mode.READWRITE)

    def check_not_read_only(self, subject: str | None) -> None:
        if self.mode_in_scope(subject).read_only:
            raise OperationNotPermitted(f"{_named(subject)} is in read-only mode")

    def check_register(self, subject: str, *, with_id: bool) -> None:
        """Raises OperationNotPermitted if the mode forbids registration, with or without an id chosen by the client."""
        self.check_not_read_only(subject)
        mode = self.mode_in_scope(subject)
        if with_id and not mode.imports:
            raise OperationNotPermitted(f"{_named(subject)} is not in import mode")
        if not with_id and mode is not Mode.READWRITE:
            raise OperationNotPermitted(f"{_named(subject)} is not in read-write mode")


def ordered(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config as in answers and records: known settings only, in Confluent's order, without unset ones."""
    return {setting.key: config[setting.key] for setting in SETTINGS if config.get(setting.key) is not None}


def _tolerant(read: Callable[[object], str | None], value: object) -> str | None:
    try:
        return read(value)
    except InvalidBody:
        return None


def _scope(subject: str | None) -> list[str | None]:
    """The scopes to search, nearest first."""
    context = None if subject is None else bare_context(context_of(subject)) or None
    return list(dict.fromkeys([subject, context, GLOBAL]))


def _named(subject: str | None) -> str:
    context = "" if subject is None else bare_context(context_of(subject))
    return f"Subject {'null' if subject is None else subject} in context {context}"

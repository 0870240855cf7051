"""Compatibility configs and modes: what is set where, and what is in force for a subject."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from registry.compatibility import Level
from registry.errors import InvalidCompatibilityLevel, InvalidMode, OperationNotPermitted, Unprocessable
from registry.state import State
from registry.subjects import context_of, context_subject

__all__ = ["Mode", "Settings", "read_config", "read_mode"]


class Mode(Enum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """READONLY for every subject, whatever is set there."""
    IMPORT = "IMPORT"
    """Schemas come with their ids and versions, and are not checked against one another."""


_UNSUPPORTED: Final = (
    "alias",
    "validateFields",
    "validateRules",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


def read_config(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a PUT /config asks for, in the words of the log; a null takes the setting away. Raises a 422."""
    changes: dict[str, Any] = {}
    if "compatibility" in body:
        changes["compatibilityLevel"] = _level(body["compatibility"])
    if "normalize" in body:
        if not isinstance(body["normalize"], bool | None):
            raise Unprocessable(f"normalize must be true or false, not {body['normalize']!r}")
        changes["normalize"] = body["normalize"]
    if "compatibilityGroup" in body:
        if not isinstance(body["compatibilityGroup"], str | None):
            raise Unprocessable(f"compatibilityGroup must be a name, not {body['compatibilityGroup']!r}")
        changes["compatibilityGroup"] = body["compatibilityGroup"]
    for name in _UNSUPPORTED:
        if body.get(name) not in (None, False):
            raise OperationNotPermitted(f"The setting {name} is not supported by this registry; leave it out")
    return changes


def _level(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and value.upper() in Level.__members__:
        return value.upper()
    raise InvalidCompatibilityLevel(value)


def read_mode(value: object) -> Mode | None:
    """The mode a client names, None for null; raises InvalidMode."""
    if value is None:
        return None
    if isinstance(value, str) and value.upper() in Mode.__members__:
        return Mode[value.upper()]
    raise InvalidMode(value)


class Settings:
    """Looks settings up: the subject's own, then its context's, then the global ones, then the server's default."""

    def __init__(self, state: State, default_level: Level) -> None:
        self._state = state
        self._default = default_level

    def config(self, subject: str | None) -> dict[str, Any] | None:
        """What is set for the subject itself; the global config always has a level."""
        own = self._state.configs.get(subject)
        shown = None if own is None else {name: item for name, item in own.items() if name != "subject"}
        return {"compatibilityLevel": self._default.value, **(shown or {})} if subject is None else shown

    def config_in_scope(self, subject: str | None) -> dict[str, Any]:
        merged: dict[str, Any] = {"compatibilityLevel": self._default.value}
        for place in reversed(_scope(subject)):
            merged.update(self.config(place) or {})
        return merged

    def level(self, subject: str) -> Level:
        value = self.config_in_scope(subject)["compatibilityLevel"]
        return Level[value] if value in Level.__members__ else self._default

    def normalizes(self, subject: str) -> bool:
        return self.config_in_scope(subject).get("normalize") is True

    def mode(self, subject: str | None) -> Mode | None:
        """What is set for the subject itself; globally READWRITE unless set."""
        value = self._state.modes.get(subject)
        if value is None:
            return Mode.READWRITE if subject is None else None
        # A mode of a newer registry (FORWARD) is one in which clients do not write here.
        return Mode[value] if value in Mode.__members__ else Mode.READONLY

    def mode_in_scope(self, subject: str | None) -> Mode:
        places = _scope(subject)
        if any(self.mode(place) is Mode.READONLY_OVERRIDE for place in places):
            return Mode.READONLY_OVERRIDE
        return next((mode for place in places if (mode := self.mode(place)) is not None), Mode.READWRITE)

    def check_not_read_only(self, subject: str | None) -> None:
        if self.mode_in_scope(subject) in (Mode.READONLY, Mode.READONLY_OVERRIDE):
            raise OperationNotPermitted(f"{_named(subject)} is in read-only mode")

    def check_register(self, subject: str, *, with_id: bool) -> None:
        """Raises OperationNotPermitted when the mode forbids to register, with an id of the client's or without."""
        self.check_not_read_only(subject)
        mode = self.mode_in_scope(subject)
        if with_id and mode is not Mode.IMPORT:
            raise OperationNotPermitted(f"{_named(subject)} is not in import mode")
        if not with_id and mode is not Mode.READWRITE:
            raise OperationNotPermitted(f"{_named(subject)} is not in read-write mode")


def _scope(subject: str | None) -> list[str | None]:
    """Where to look, nearest first."""
    if subject is None:
        return [None]
    context = context_subject(subject)
    return list(dict.fromkeys([subject, context, None]))


def _named(subject: str | None) -> str:
    return "The registry" if subject is None else f"Subject {subject} in context {context_of(subject)}"

"""Flow files: reads TOML into a trigger whose function runs the file's actions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from events.flows import templates
from events.flows.actions import Action, Call, Create, Publish, Send
from events.flows.org import OrgLogin
from events.triggers.api import Trigger, TriggerContext, TriggerEvent
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError

__all__ = ["read_flow"]

_KEYS: Final = ("name", "event", "filter", "batch_size", "partitions", "partition_key", "replay", "org", "action")
_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "publish": ("fields",),
    "send": ("key", "value"),
    "call": ("method", "headers", "body", "timeout_s"),
    "create": ("fields",),
}
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def read_flow(path: Path) -> Trigger:
    """The flow of a file, named after the file unless it sets a name. Raises UsageError that names the invalid key."""
    try:
        document = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"it is not TOML: {error}") from error
    _known(document, _KEYS, "a flow")
    org = document.get("org")
    if org is not None:
        _check_org(org)
    listed = document.get("action")
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise UsageError("a flow has at least one [[action]]")
    actions = [_action(given, f"action {number}", org) for number, given in enumerate(listed, 1)]
    return Trigger(
        name=_text(document, "name", path.stem),
        event=_text(document, "event", None),
        function=_function(actions),
        **{key: document[key] for key in ("batch_size", "partitions", "partition_key", "replay") if key in document},
        filter=_text(document, "filter", ""),
        kind="flow",
    )


def _function(actions: Sequence[Action]) -> Callable[[Sequence[TriggerEvent], TriggerContext], None]:
    def run(events: Sequence[TriggerEvent], context: TriggerContext) -> None:
        for event in events:
            for number, action in enumerate(actions, 1):
                action.do(event, context, f"{context.trigger.name}-{event.uuid or event.replay_id}-{number}")
            context.set_resume_checkpoint(event.replay_id)

    return run


def _action(definition: Mapping[str, Any], where: str, org: Mapping[str, Any] | None) -> Action:
    kinds = [kind for kind in _ACTIONS if kind in definition]
    if len(kinds) != 1:
        raise UsageError(f"{where}: one of {', '.join(_ACTIONS)} says what is done, and {len(kinds)} of them are there")
    (kind,) = kinds
    _known(definition, (kind, *_ACTIONS[kind]), f"{where} ({kind})")
    target = _text(definition, kind, None, where)
    templates.check(dict(definition), where)
    if kind == "send":
        return Send(target, definition.get("key"), definition.get("value"))
    if kind == "call":
        return _call(target, definition, where)
    values = definition.get("fields")
    if not isinstance(values, dict):
        raise UsageError(f"{where}: {kind} needs fields = {{ Field__c = value }}")
    if kind == "publish":
        if not target.endswith("__e"):
            raise UsageError(f"{where}: publish is {target!r}, which is no event's name: those end in __e")
        return Publish(target, values)
    if org is None:
        raise UsageError(f"{where}: create needs a table [org] with url, client_id and client_secret")
    return Create(target, values, org)


def _call(url: str, definition: Mapping[str, Any], where: str) -> Call:
    if not url.startswith(("http://", "https://", "{env:")):
        raise UsageError(f"{where}: call is {url!r}; an address begins with http:// or https://")
    method, headers, timeout_s = (
        definition.get("method", "POST"),
        definition.get("headers", {}),
        definition.get("timeout_s", 30),
    )
    if method not in _METHODS:
        raise UsageError(f"{where}: method is {method!r}; {', '.join(_METHODS)} are possible")
    if not isinstance(headers, dict):
        raise UsageError(f"{where}: headers is a table of names and values")
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 3600:
        raise UsageError(f"{where}: timeout_s is {timeout_s!r}; more than 0 and up to 3600 is possible")
    return Call(url, method, headers, definition.get("body"), timeout_s)


def _check_org(org: Any) -> None:
    names = [entry.name for entry in fields(OrgLogin)]
    if not isinstance(org, dict):
        raise UsageError("org is a table: [org]")
    _known(org, names, "[org]")
    for name in ("url", "client_id", "client_secret"):
        _text(org, name, None, "[org]")
    for name in org:
        _text(org, name, None, "[org]")
    templates.check(org, "[org]")


def _known(definition: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for name in definition:
        if name not in keys:
            nearest = nearest_name(name, keys)
            hint = f"; did you mean {nearest}?" if nearest else f"; it has {', '.join(keys)}"
            raise UsageError(f"{where} has no key {name!r}{hint}")


def _text(definition: Mapping[str, Any], name: str, default: str | None, where: str = "a flow") -> str:
    value = definition.get(name, default)
    if not isinstance(value, str):
        raise UsageError(f"{where}: {name} is {'missing' if value is None else repr(value)[:50]}; a text is needed")
    return value

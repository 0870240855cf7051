"""``/mode``: whether a subject accepts writes, is read-only, or is being imported from another registry."""

from __future__ import annotations

from typing import Any, Final

from registry.domain.settings import Mode, read_mode
from registry.errors import InvalidMode, ModeNotConfigured
from registry.model.subjects import GLOBAL
from registry.server.routes.call import Call
from registry.server.routes.endpoint import Endpoint
from registry.server.routes.query import DEFAULT_TO_GLOBAL, FORCE, RECURSIVE

__all__ = ["ENDPOINTS"]


def get_mode(call: Call) -> Any:
    """The mode of a subject or context."""
    return _shown(call, call.settings_scope or None)


def get_top_level_mode(call: Call) -> Any:
    """The global mode."""
    return _shown(call, None)


def _shown(call: Call, scope: str | None) -> Any:
    settings = call.registry.catalog.settings
    mode = settings.mode_in_scope(scope) if call.flag(DEFAULT_TO_GLOBAL) else settings.mode(scope)
    if mode is None:
        raise ModeNotConfigured(str(scope))
    return {"mode": mode.value}


async def update_subject_mode(call: Call) -> Any:
    """Set the mode of a subject or context."""
    return await _update(call, call.settings_scope or None)


async def update_top_level_mode(call: Call) -> Any:
    """Set the global mode."""
    return await _update(call, None)


async def _update(call: Call, scope: str | None) -> Any:
    mode_name = call.json().get("mode")
    mode = read_mode(mode_name)
    if mode is Mode.FORWARD and scope != GLOBAL:
        raise InvalidMode("Forward mode only supported on global level")
    await call.registry.set_mode(scope, mode, force=call.flag(FORCE))
    return {} if mode is None else {"mode": mode_name}


async def delete_subject_mode(call: Call) -> Any:
    """Remove the mode of a subject or context. The answer is the old one."""
    return _was(await call.registry.delete_mode(call.settings_scope or None, recursive=call.flag(RECURSIVE)))


async def delete_global_mode(call: Call) -> Any:
    """Return to READWRITE. The answer is the old mode."""
    return _was(await call.registry.delete_mode(None, recursive=call.flag(RECURSIVE)))


def _was(mode: Mode | None) -> Any:
    return {} if mode is None else {"mode": mode.value}


_SUBJECT: Final = "/mode/{subject}"
_REQUEST: Final = "ModeUpdateRequest"

ENDPOINTS: Final = (
    Endpoint("GET", "/mode", get_top_level_mode, "Mode", (DEFAULT_TO_GLOBAL,), cached=True),
    Endpoint("PUT", "/mode", update_top_level_mode, _REQUEST, (FORCE,), body=_REQUEST),
    Endpoint("DELETE", "/mode", delete_global_mode, "Mode", (RECURSIVE,)),
    Endpoint("GET", _SUBJECT, get_mode, "Mode", (DEFAULT_TO_GLOBAL,), cached=True),
    Endpoint("PUT", _SUBJECT, update_subject_mode, _REQUEST, (FORCE,), body=_REQUEST),
    Endpoint("DELETE", _SUBJECT, delete_subject_mode, "Mode", (RECURSIVE,)),
)

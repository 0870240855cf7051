"""``/config``: compatibility levels and other settings of a subject, a context or all."""

from __future__ import annotations

from typing import Any, Final

from registry.domain.settings import SETTINGS, read_config
from registry.errors import ConfigNotConfigured
from registry.server.routes.call import Call
from registry.server.routes.endpoint import Endpoint
from registry.server.routes.query import DEFAULT_TO_GLOBAL

__all__ = ["ENDPOINTS"]


def get_subject_config(call: Call) -> Any:
    """The config of a subject or context."""
    scope = call.settings_scope or None
    if call.flag(DEFAULT_TO_GLOBAL):
        return call.registry.catalog.settings.config_in_scope(scope)
    configured = call.registry.catalog.settings.config(scope)
    if configured is None:
        raise ConfigNotConfigured(call.settings_scope)
    return configured


def get_global_config(call: Call) -> Any:
    """The global config."""
    scope = call.flag(DEFAULT_TO_GLOBAL)
    return (
        call.registry.catalog.settings.config_in_scope(None) if scope else call.registry.catalog.settings.config(None)
    )


async def update_subject_config(call: Call) -> Any:
    """Change the config of a subject or context.

    Members that are left out stay; null removes. The answer is the whole config.
    """
    return _as_request(await call.registry.set_config(call.settings_scope or None, read_config(call.json())))


async def update_global_config(call: Call) -> Any:
    """Change the global config. Members that are left out stay; null removes. The answer is the whole config."""
    return _as_request(await call.registry.set_config(None, read_config(call.json())))


async def delete_subject_config(call: Call) -> Any:
    """Remove the config of a subject or context. The answer is the old one."""
    return await call.registry.delete_config(call.settings_scope or None)


async def delete_global_config(call: Call) -> Any:
    """Return to the server's default. The answer is the old config."""
    return await call.registry.delete_config(None)


def _as_request(config: dict[str, Any]) -> dict[str, Any]:
    """A config with the names of a request, where the level is called ``compatibility``."""
    return {setting.name: config[setting.key] for setting in SETTINGS if setting.key in config}


_SUBJECT: Final = "/config/{subject}"
_REQUEST: Final = "ConfigUpdateRequest"

ENDPOINTS: Final = (
    Endpoint("GET", "/config", get_global_config, "Config", (DEFAULT_TO_GLOBAL,), cached=True),
    Endpoint("PUT", "/config", update_global_config, _REQUEST, body=_REQUEST),
    Endpoint("DELETE", "/config", delete_global_config, "Config"),
    Endpoint("GET", _SUBJECT, get_subject_config, "Config", (DEFAULT_TO_GLOBAL,), cached=True),
    Endpoint("PUT", _SUBJECT, update_subject_config, _REQUEST, body=_REQUEST),
    Endpoint("DELETE", _SUBJECT, delete_subject_config, "Config"),
)

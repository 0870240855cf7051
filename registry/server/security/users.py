"""Creates the registry's guards from its keys."""

from __future__ import annotations

from pathlib import Path

from registry.server.security.access import Access
from registry.server.security.authfile import AuthFile
from registry.server.security.config import SecurityConfig
from registry.server.security.platform_users import PlatformRights
from tidegate.kit.errors import ConfigError, Problem, UsageError
from tidegate.kit.http import Guard
from tidegate.kit.http_security import BasicAuth, Passwords
from tidegate.kit.jaas import login_contexts
from tidegate.kit.passwords import PropertyFile, jetty_users
from tidegate.kit.users import UsersFile

__all__ = ["guards"]

_LOGIN = "java.security.auth.login.config"


def guards(keys: SecurityConfig) -> list[Guard]:
    """The guards that check each request first; empty if the registry is open. Raises ConfigError."""
    if keys.auth_file is not None:
        try:
            file = AuthFile(Path(keys.auth_file))
        except UsageError as error:
            raise ConfigError([Problem("registry_authfile", f"registry_authfile: {error}")]) from error
        return [_basic(keys, file), Access(file)]
    if keys.users_file is not None:
        try:
            users = UsersFile(Path(keys.users_file))
        except UsageError as error:
            raise ConfigError([Problem("users.file", f"users.file: {error}")]) from error
        return [_basic(keys, users), Access(PlatformRights(users))]
    return [_basic(keys, _users(keys))] if keys.authentication_method == "BASIC" else []


def _basic(keys: SecurityConfig, users: Passwords) -> BasicAuth:
    return BasicAuth(
        users,
        realm=keys.authentication_realm,
        roles=keys.authentication_roles,
        skip=keys.authentication_skip_paths,
        skip_options=keys.skip_options,
    )


def _users(keys: SecurityConfig) -> PropertyFile:
    path = Path(keys.login_config or "")
    try:
        entries = login_contexts(path.read_text(encoding="utf-8"))
        modules = entries.get(keys.authentication_realm)
        if modules is None:
            raise ValueError(
                f"it has no entry {keys.authentication_realm!r}, which authentication.realm names; it has {', '.join(entries)}"
            )
        if len(modules) != 1 or not modules[0].name.endswith(".PropertyFileLoginModule"):
            raise ValueError(
                f"entry {keys.authentication_realm} must hold one PropertyFileLoginModule; other modules are Java"
            )
        file = modules[0].options.get("file")
        if file is None:
            raise ValueError(f'entry {keys.authentication_realm} does not say file="..."')
        return PropertyFile(path.parent / file, jetty_users)
    except OSError as error:
        raise ConfigError([Problem(_LOGIN, f"{_LOGIN}: cannot read {path}: {error.strerror}")]) from error
    except (ValueError, UsageError) as error:
        raise ConfigError([Problem(_LOGIN, f"{_LOGIN}: {path}: {error}")]) from error

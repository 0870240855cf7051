"""Basic authentication like Kafka Connect's extension: users in a property file, named by a JAAS file (KIP-285)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from starlette.requests import Request

from connect.config.rest import RestConfig
from connect.rest.rights import RightsGuard
from tidegate.kit.errors import ConfigError, Problem, UsageError
from tidegate.kit.http import Guard
from tidegate.kit.http_security import BasicAuth
from tidegate.kit.jaas import login_contexts
from tidegate.kit.passwords import PropertyFile, plain_users
from tidegate.kit.users import UsersFile

__all__ = ["user_guards"]

_KEY: Final = "java.security.auth.login.config"
_ENTRY: Final = "KafkaConnect"
_MODULE: Final = "PropertyFileLoginModule"
_INTERNAL: Final = (
    ("POST", re.compile(r"/connectors/[^/]+/tasks/?")),
    ("PUT", re.compile(r"/connectors/[^/]+/fence/?")),
    ("PUT", re.compile(r"/tidegate/round/?")),
)
"""Requests between workers, which are signed with the group's session key instead."""


def user_guards(config: RestConfig) -> list[Guard]:
    """The guards that check each request first; empty without authentication. Raises ConfigError with the problem."""
    if config.users_file is not None:
        try:
            file = UsersFile(Path(config.users_file))
        except UsageError as error:
            raise ConfigError([Problem("users.file", f"users.file: {error}")]) from error
        return [_for_users(BasicAuth(file, realm="tidegate")), RightsGuard(file)]
    if config.asks_users and config.login_config:
        users = PropertyFile(_users_file(Path(config.login_config)), plain_users)
        return [_for_users(BasicAuth(users, realm=None, message="User cannot access the resource."))]
    return []


def _for_users(basic: BasicAuth) -> Guard:
    """The guard for users' requests; those of other workers are signed."""

    async def guard(request: Request) -> None:
        path = request.scope["path"]
        if not any(request.method == method and pattern.fullmatch(path) for method, pattern in _INTERNAL):
            await basic(request)

    return guard


def _users_file(path: Path) -> Path:
    try:
        contexts = login_contexts(path.read_text())
    except OSError as error:
        raise _wrong(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise _wrong(f"{path}: {error}") from error
    if _ENTRY not in contexts:
        raise _wrong(f"{path} has no entry {_ENTRY}; it has: {', '.join(contexts) or 'none'}")
    module = next((module_ for module_ in contexts[_ENTRY] if module_.name.rpartition(".")[2] == _MODULE), None)
    if module is None or "file" not in module.options:
        raise _wrong(f'{path}: entry {_ENTRY} needs a {_MODULE} with file="..."')
    return Path(module.options["file"])


def _wrong(text: str) -> ConfigError:
    return ConfigError([Problem(_KEY, text)])

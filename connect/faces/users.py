"""Basic authentication as Kafka Connect's extension has it: users in a property file, named by a JAAS file (KIP-285)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from starlette.requests import Request

from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.http import Guard
from tidegate.kit.http_security import BasicAuth
from tidegate.kit.jaas import login_contexts
from tidegate.kit.passwords import PropertyFile, plain_users

__all__ = ["user_guard"]

_KEY: Final = "java.security.auth.login.config"
_ENTRY: Final = "KafkaConnect"
_MODULE: Final = "PropertyFileLoginModule"
_INTERNAL: Final = (
    ("POST", re.compile(r"/connectors/[^/]+/tasks/?")),
    ("PUT", re.compile(r"/connectors/[^/]+/fence/?")),
)
"""What workers ask of each other, which is signed with the group's session key instead."""


def user_guard(login_config: str) -> Guard:
    """Lets in the users of the entry KafkaConnect. Raises ConfigError that says what the file lacks."""
    basic = BasicAuth(
        PropertyFile(_users_file(Path(login_config)), plain_users),
        realm=None,
        message="User cannot access the resource.",
    )

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
    module = next((one for one in contexts[_ENTRY] if one.name.rpartition(".")[2] == _MODULE), None)
    if module is None or "file" not in module.options:
        raise _wrong(f'{path}: entry {_ENTRY} needs a {_MODULE} with file="..."')
    return Path(module.options["file"])


def _wrong(text: str) -> ConfigError:
    return ConfigError([Problem(_KEY, text)])

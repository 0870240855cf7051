"""The login of the command line: the internal user for the owner of a platform's data folder, otherwise the
environment's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate.cli.options import address_of, context_in_use
from tidegate.clients.credentials import Credentials
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError
from tidegate.kit.users import INTERNAL_USER
from tidegate.security import connect_token, find_security

if TYPE_CHECKING:
    from registry.client import RegistryClient

__all__ = [
    "connect_credentials",
    "credentials_for",
    "naming_subjects",
    "registry_client",
    "registry_properties",
]

_USER, _PASSWORD, _CA = "TIDEGATE_USER", "TIDEGATE_PASSWORD", "TIDEGATE_CA"
_NO_SUBJECT: Final = re.compile(r"Subject '(.*)' not found")


def credentials_for(data: Path, address: Any = None) -> Credentials:
    """Credentials of the environment (TIDEGATE_USER, TIDEGATE_PASSWORD, TIDEGATE_CA) if set, otherwise of the current
    context, otherwise of the platform on ``data``.

    For another ``address`` only the environment's are used.
    """
    named = {name: os.environ.get(name, "") for name in (_USER, _PASSWORD, _CA)}
    if any(named.values()):
        if bool(named[_USER]) != bool(named[_PASSWORD]):
            raise UsageError(f"give both of {_USER} and {_PASSWORD}, or none")
        return Credentials(named[_USER], named[_PASSWORD], named[_CA])
    if (used := context_in_use()) is not None and address is None:
        return Credentials(used[1].user, used[1].password.reveal(), used[1].ca)
    security = find_security(data) if address is None else None
    if security is None:
        return Credentials()
    return Credentials(INTERNAL_USER, security.internal_password, str(security.ca))


def connect_credentials(data: Path, address: Any = None) -> Credentials:
    """The same for Connect, which may require a token even if nothing else requires a login."""
    known = credentials_for(data, address)
    if known != Credentials() or address is not None or context_in_use() is not None:
        return known
    token = connect_token(data)
    return known if token is None else Credentials(INTERNAL_USER, token)


def registry_properties(data: Path, address: str | None = None) -> dict[str, str]:
    """Settings of a client for the registry at an address, or for the platform's."""
    return {**credentials_for(data, address).registry, "schema.registry.url": address_of("registry", data, address)}


def registry_client(data: Path, address: str | None = None) -> RegistryClient:
    """A client for the registry at an address, or for the platform's."""
    from registry.client import RegistryClient

    return RegistryClient.from_properties(registry_properties(data, address))


@contextmanager
def naming_subjects(client: RegistryClient) -> Iterator[None]:
    """Adds the nearest name to the error of a subject that does not exist."""
    from registry.client import NotFound

    try:
        yield
    except NotFound as error:
        if (matched := _NO_SUBJECT.search(str(error))) is None:
            raise
        near = nearest_name(matched[1], client.subjects())
        if near is None:
            raise
        raise NotFound(f"{error} Did you mean {near}?", error.error_code) from error

"""Keys for the registry's listeners and users, under Confluent's names (rest-utils) where they exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tidegate.kit.addresses import open_urls
from tidegate.kit.config import KeyType, at_least, config, family, key, keys_of, one_of, parse
from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.http_security import BrowserKeys
from tidegate.kit.tls import TlsKeys

__all__ = ["Listener", "SecurityConfig"]

_URL: Final = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)://(?P<host>\[[0-9a-fA-F:.]+\]|[^/:\[\]]+):(?P<port>\d{1,5})/?"
)
_SCHEMES: Final = ("http", "https")
_CLIENT_AUTH: Final = ("NONE", "REQUESTED", "REQUIRED")


class Listener(NamedTuple):
    """One address. ``name`` is in lower case; an unnamed listener has its scheme as name."""

    name: str
    scheme: str
    host: str
    port: int


@config
class SecurityConfig(TlsKeys, BrowserKeys):
    """Listeners, TLS, authentication and authorization of a registry."""

    listener_urls: list[str] = key(
        "listeners",
        default=["http://127.0.0.1:8081"],
        doc="Where requests are answered: http:// or https:// (or NAME://, see listener.protocol.map) with host and port, "
        "separated by commas; port 0 takes a free one.",
        importance="high",
    )
    listener_protocols: list[str] = key(
        "listener.protocol.map", default=[], doc="The scheme of each named listener, as NAME:http or NAME:https."
    )
    listener_keys: dict[str, str] = family(
        "listener.name.",
        doc="TLS keys of one listener, its name (https for an unnamed one) in lower case, before the others.",
    )
    client_authentication: str = key(
        "ssl.client.authentication",
        default="NONE",
        check=one_of(*_CLIENT_AUTH, ignore_case=True),
        doc="Whether clients of https listeners show a certificate that the trust store knows.",
    )
    client_auth: bool = key(
        "ssl.client.auth",
        default=False,
        doc="The older name of ssl.client.authentication=REQUIRED.",
        deprecated="Use ssl.client.authentication.",
    )
    keystore_reload: bool = key(
        "ssl.keystore.reload",
        default=False,
        importance="low",
        doc="Whether a key store that changes is read again; new connections get the new certificate.",
    )
    authentication_method: str = key(
        "authentication.method",
        default="NONE",
        check=one_of("NONE", "BASIC"),
        doc="BASIC asks each client for a user and a password. Confluent's BEARER needs Java classes, and is refused.",
    )
    authentication_realm: str = key(
        "authentication.realm",
        default="",
        doc="What clients are told they authenticate to; also the entry of the JAAS file that names the users.",
    )
    authentication_roles: list[str] = key(
        "authentication.roles", default=["*"], doc="The roles of which a user needs one; * is any user."
    )
    authentication_skip_paths: list[str] = key(
        "authentication.skip.paths",
        default=[],
        doc="Paths that need no user; a * at the end stands for all that begin so.",
    )
    skip_options: bool = key(
        "access.control.skip.options",
        default=True,
        importance="low",
        doc="Whether OPTIONS, which browsers ask before others, needs no user.",
    )
    login_config: str | None = key(
        "java.security.auth.login.config",
        default=None,
        doc="The JAAS file whose entry (named by authentication.realm) has a PropertyFileLoginModule with the file of users. "
        "Confluent takes it as a system property of Java.",
    )
    auth_file: str | None = key(
        "registry_authfile",
        default=None,
        aliases=("registry.authfile",),
        doc="Karapace's JSON file of users, password hashes and permissions by subject; it switches BASIC on. Read again "
        "when it changes.",
    )
    users_file: str | None = key(
        "users.file",
        default=None,
        doc="A key of Tidegate's own: the file of the platform's users (`tidegate users`); it switches BASIC on, and rights on subjects "
        "and on the platform decide. Read again when it changes.",
    )
    max_request_bytes: int = key(
        "request.max.bytes",
        default=10 * 1024 * 1024,
        type=KeyType.INT,
        check=at_least(1),
        importance="low",
        doc="The largest body of a request; larger ones are answered with 413. A key of Tidegate's own.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        try:
            listeners = self.listeners
        except ConfigError as error:
            yield from error.problems
            return
        for listener in listeners:
            if listener.scheme == "https":
                yield from self._tls_problems(listener)
        named = {
            "registry_authfile": self.auth_file,
            "java.security.auth.login.config": self.login_config,
            "users.file": self.users_file,
        }
        configured = [name for name, value in named.items() if value is not None]
        if len(configured) > 1:
            yield Problem(configured[0], f"{' and '.join(configured)} both name users: give one")
        if self.authentication_method == "BASIC" and not configured:
            yield Problem(
                "authentication.method",
                "authentication.method=BASIC needs users: give java.security.auth.login.config or registry_authfile",
            )

    def _tls_problems(self, listener: Listener) -> Iterator[Problem]:
        try:
            keys = self.tls_of(listener)
        except ConfigError as error:
            yield from error.problems
            return
        if keys.ssl_keystore_location is None and keys.ssl_keystore_key is None:
            yield Problem(
                "ssl.keystore.location", f"Listener {listener.name} needs a key store: set ssl.keystore.location"
            )

    @property
    def listeners(self) -> list[Listener]:
        """The listeners in configured order. Raises ConfigError."""
        schemes = {name: name for name in _SCHEMES}
        for item in self.listener_protocols:
            name, _, scheme = item.rpartition(":")
            schemes[name.strip().lower()] = scheme.strip().lower()
        listeners = []
        for url in self.listener_urls:
            match = _URL.fullmatch(url)
            scheme = schemes.get(match["name"].lower(), "") if match is not None else ""
            if match is None or scheme not in _SCHEMES or int(match["port"]) > 65535:
                wrong = (
                    f"Invalid value {url} for configuration listeners: must be an address like http://127.0.0.1:8081"
                )
                raise ConfigError([Problem("listeners", wrong)])
            listeners.append(Listener(match["name"].lower(), scheme, match["host"].strip("[]"), int(match["port"])))
        if not listeners:
            raise ConfigError([Problem("listeners", "Invalid value for configuration listeners: give at least one")])
        return listeners

    @property
    def open_listeners(self) -> list[str]:
        """Listeners that other machines can reach and that require neither a login nor a certificate.

        Raises ConfigError.
        """
        if self.authentication_method == "BASIC" or self.users_file is not None or self.auth_file is not None:
            return []
        return open_urls(self.listeners, client_auth=self.asks_clients)

    @property
    def asks_clients(self) -> str:
        """Whether TLS clients need a certificate: none, requested or required."""
        return "required" if self.client_auth else self.client_authentication.lower()

    def tls_of(self, listener: Listener) -> TlsKeys:
        """The TLS keys of a listener: its own, then the common ones. Raises ConfigError."""
        prefix = f"{listener.name}."
        keys = {name[len(prefix) :]: value for name, value in self.listener_keys.items() if name.startswith(prefix)}
        common = {tls_key.name: getattr(self, tls_key.attribute) for tls_key in keys_of(TlsKeys)}
        return parse(TlsKeys, {**common, **keys})

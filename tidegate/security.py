"""The security of a platform, in one folder: a certificate authority, the certificate of all faces, and the users.

``DATA/security`` is made by ``tidegate secure init``. Where it is there, ``tidegate up`` gives TLS and logins to every face, and hands each
component the client settings by which it reaches the others. Only the owner may look into it: who can read it may do everything.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tidegate.kit.certificates import CA_FILE, certificates
from tidegate.kit.errors import UsageError
from tidegate.kit.files import make_folder, write_whole
from tidegate.kit.users import ADMIN, INTERNAL_USER, PlatformUser, Right, Users, read_users, with_password, write_users

__all__ = [
    "Security",
    "connect_token",
    "find_security",
    "init_security",
    "make_connect_token",
]

_FOLDER: Final = "security"
_CONNECT_TOKEN: Final = "connect.token"
_CONNECT_USERS: Final = "connect.users.json"
_SETTINGS: Final = "settings.json"
_PASSWORD: Final = "internal.password"
_PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Security:
    """The folder of a platform that has one."""

    folder: Path

    @property
    def users_file(self) -> Path:
        return self.folder / "users.json"

    @property
    def ca(self) -> Path:
        """The certificate of the authority that clients trust."""
        return self.folder / "tls" / CA_FILE

    @property
    def identity(self) -> Path:
        """Certificate chain and key in one PEM file, as Kafka's key stores are."""
        return self.folder / "identity.pem"

    @property
    def hosts(self) -> Sequence[str]:
        """The names that the certificate has, beside those of this machine."""
        hosts: list[str] = self._settings()["hosts"]
        return hosts

    @property
    def internal_password(self) -> str:
        try:
            return (self.folder / _PASSWORD).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"cannot read {self.folder / _PASSWORD}: {error.strerror}") from error

    def renew(self, hosts: Iterable[str] = ()) -> bool:
        """Make the certificate anew where it runs out or has to name more hosts; whether it was.

        Called at every start of the platform; running components read the file again. A file of users from before
        delegated logins gets its key here.
        """
        users = self.users
        if not users.delegation_key:
            write_users(self.users_file, users.with_delegation_key())
        names = sorted({*self.hosts, *hosts})
        files = certificates(self.folder / "tls", names)
        write_whole(self.folder / _SETTINGS, json.dumps({"hosts": names}) + "\n", mode=_PRIVATE)
        together = files.certificate.read_text() + files.private_key.read_text()
        if self.identity.exists() and self.identity.read_text() == together:
            return False
        write_whole(self.identity, together, mode=_PRIVATE)
        return True

    # users

    @property
    def users(self) -> Users:
        return read_users(self.users_file)

    def add_user(self, name: str, password: str, rights: Iterable[str]) -> None:
        """Raises UsageError where there is such a user, or a right is none."""
        users = self.users
        if users.find(name) is not None:
            raise UsageError(f"there is a user {name!r}: change the password or the rights, or remove the user first")
        if name.startswith(f"{INTERNAL_USER}/"):
            raise UsageError(
                f"{name!r} cannot be a user's name: {INTERNAL_USER}/NAME is how the tasks of user NAME log in"
            )
        if not name or name != name.strip() or any(c in name for c in ':"\\,=\n'):
            raise UsageError(f"{name!r} cannot be a user's name: leave out blanks at the ends and : \" \\ , =")
        made = PlatformUser(name, rights=_rights(rights), id=secrets.token_hex(8))
        write_users(self.users_file, users.having(with_password(made, password, now_ms=_now_ms())))

    def set_password(self, name: str, password: str) -> None:
        """Sessions with the old one end."""
        self._replace(with_password(self._user(name), password, now_ms=_now_ms()))

    def set_rights(self, name: str, rights: Iterable[str]) -> None:
        self._replace(replace(self._user(name), rights=_rights(rights)))

    def set_active(self, name: str, active: bool) -> None:
        self._replace(replace(self._user(name), active=active, sessions_from_ms=_now_ms()))

    def remove_user(self, name: str) -> None:
        self._user(name)
        write_users(self.users_file, self.users.without(name))

    def _user(self, name: str) -> PlatformUser:
        if name == INTERNAL_USER:
            raise UsageError(f"{name} is the user of the components themselves")
        user = self.users.find(name)
        if user is None:
            names = ", ".join(user.name for user in self.users if user.name != INTERNAL_USER) or "none"
            raise UsageError(f"there is no user {name!r}; there are: {names}")
        return user

    def _replace(self, user: PlatformUser) -> None:
        write_users(self.users_file, self.users.having(user))

    # what components and commands are configured by

    @property
    def kafka_client(self) -> Mapping[str, str]:
        """Settings of a Kafka client that is the internal user."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{INTERNAL_USER}" password="{self.internal_password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }

    @property
    def registry_client(self) -> Mapping[str, str]:
        """Settings of a registry client that is the internal user, beside ``schema.registry.url``."""
        return {
            "basic.auth.credentials.source": "USER_INFO",
            "basic.auth.user.info": f"{INTERNAL_USER}:{self.internal_password}",
            "schema.registry.ssl.truststore.type": "PEM",
            "schema.registry.ssl.truststore.location": str(self.ca),
        }

    @property
    def tls_server(self) -> Mapping[str, str]:
        """Settings of a TLS face."""
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.identity)}

    def _settings(self) -> dict[str, list[str]]:
        path = self.folder / _SETTINGS
        try:
            settings: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
            return settings
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}; `tidegate secure init` makes the folder anew") from error


def find_security(data: Path) -> Security | None:
    """The security of the platform on a data folder; None where it has none."""
    folder = data / _FOLDER
    return Security(folder) if (folder / _SETTINGS).exists() else None


def init_security(data: Path, *, hosts: Iterable[str], admin: str, password: str) -> Security:
    """Make it: an authority, a certificate for localhost and ``hosts``, and a first user who may do everything.

    Raises UsageError where there is one already.
    """
    if find_security(data) is not None:
        raise UsageError(
            f"{data / _FOLDER} is there already: `tidegate users` changes users, `tidegate secure renew` the certificate"
        )
    made = Security(data / _FOLDER)
    made.folder.mkdir(parents=True, exist_ok=True)
    made.folder.chmod(0o700)
    internal = secrets.token_urlsafe(32)
    write_whole(made.folder / _PASSWORD, internal + "\n", mode=_PRIVATE)
    user = with_password(PlatformUser(INTERNAL_USER, rights=(ADMIN,)), internal, now_ms=_now_ms())
    write_users(made.users_file, Users([user]).with_delegation_key())
    made.add_user(admin, password, ["admin"])
    # Last: what is half made is made anew.
    write_whole(made.folder / _SETTINGS, json.dumps({"hosts": sorted(set(hosts))}) + "\n", mode=_PRIVATE)
    made.renew()
    return made


def connect_token(data: Path) -> str | None:
    """The password of the internal user at a Connect without users; None if Connect requires no login."""
    try:
        return (data / _CONNECT_TOKEN).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def make_connect_token(data: Path, *, needed: bool) -> Path | None:
    """The file of users for a Connect that asks for the token, which is made where there is none; without ``needed`` it is removed.

    Raises UsageError where the folder cannot be written.
    """
    token, users = data / _CONNECT_TOKEN, data / _CONNECT_USERS
    if needed:
        make_folder(data)
    try:
        if not needed:
            for path in (token, users):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    path.unlink()
            return None
        if not (token.exists() and users.exists()):
            secret = secrets.token_urlsafe(32)
            user = with_password(PlatformUser(INTERNAL_USER, rights=(ADMIN,)), secret, now_ms=_now_ms())
            write_users(users, Users([user]))
            write_whole(token, secret + "\n", mode=_PRIVATE)
    except OSError as error:
        raise UsageError(f"cannot write {token}: {error.strerror}") from error
    return users


def _rights(texts: Iterable[str]) -> tuple[Right, ...]:
    try:
        return tuple(dict.fromkeys(Right.parse(text) for text in texts))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

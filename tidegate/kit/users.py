"""The users of a platform, in one file that every component reads: who they are, how they prove it, and what each may do.

    {"users": [{"name": "alice", "password": "scrypt:...", "scram": {"SCRAM-SHA-512": "4096:..."},
                "rights": ["read topic orders*", "write subject orders-*"]}]}

``tidegate users`` writes it. A right is ``VERB KIND NAME``: verbs are read, write and manage (which includes both); a name that ends in
``*`` means all that begin so. ``admin`` is every right there is, or ever will be.

The tasks of Connect log in for the owner of their connector without the owner's password: as ``tidegate/NAME``, with a password that
follows from the file's ``delegationKey`` (``Users.delegate_password``). Such a login has the rights that the owner has at the time.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tidegate.kit.errors import UsageError
from tidegate.kit.files import write_whole
from tidegate.kit.passwords import LoggedIn, WatchedFile
from tidegate.kit.scram import ScramCredential, make_credential
from tidegate.kit.secrets import Secret, hashed_secret, read_secret

__all__ = [
    "INTERNAL_USER",
    "KINDS",
    "SCRAM_DIGESTS",
    "VERBS",
    "PlatformUser",
    "Right",
    "Users",
    "UsersFile",
    "read_users",
    "with_password",
    "write_users",
]

INTERNAL_USER: Final = "tidegate"
"""The user as whom the components, and the command line of the folder's owner, reach each other."""

VERBS: Final = ("read", "write", "manage")
KINDS: Final = {
    "topic": "topics: records; manage makes, changes and deletes them",
    "group": "consumer groups: read joins one and commits",
    "transaction": "transactional ids: write uses one",
    "subject": "subjects of the schema registry",
    "connector": "connectors: read sees them, manage makes, changes, restarts and deletes them",
    "event": "platform events and channels: read subscribes, write publishes, manage defines",
    "platform": "the platform itself: read sees its state and settings, manage changes them",
    "file": "files of the machine of Connect, by absolute path, that connectors of the user read and write",
}
"""The kinds of things that rights are about, each with a description."""

SCRAM_DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ADMIN: Final = "admin"
_DELEGATE: Final = f"{INTERNAL_USER}/"
_KEY_BYTES: Final = 32
_REMEMBERED: Final = 10_000
_MEMBERS: Final = frozenset({"name", "password", "scram", "rights", "active", "sessionsFrom", "id"})


class Right(NamedTuple):
    """One thing that a user may do."""

    verb: str
    kind: str
    name: str

    def __str__(self) -> str:
        return _ADMIN if self == ADMIN else f"{self.verb} {self.kind} {self.name}"

    @classmethod
    def parse(cls, text: str) -> Right:
        """Raises ValueError that says what a right looks like."""
        words = text.split()
        if words[1:2] == ["file"]:  # a path may have blanks in it
            words = text.strip().split(maxsplit=2)
        if words == [_ADMIN]:
            return ADMIN
        if len(words) == 2 and words[1] == "platform":
            words.append("*")
        if len(words) != 3 or words[0] not in VERBS or words[1] not in KINDS:
            raise ValueError(
                f"{text!r} is no right: write VERB KIND NAME, such as 'read topic orders*', or admin; "
                f"verbs are {', '.join(VERBS)}, kinds {', '.join(KINDS)}"
            )
        if words[1] == "file" and not words[2].startswith("/"):
            raise ValueError(f"{text!r} is no right: the name of a file is an absolute path, such as /srv/orders/*")
        return cls(*words)

    def covers(self, verb: str, kind: str, name: str) -> bool:
        """Whether it allows to do this."""
        if self == ADMIN:
            return True
        if self.kind != kind or self.verb not in (verb, "manage"):
            return False
        return self.name == name or (self.name.endswith("*") and name.startswith(self.name[:-1]))


ADMIN: Final = Right("manage", "*", "*")


@dataclass(frozen=True, slots=True)
class PlatformUser:
    """Somebody who may log in."""

    name: str
    password: Secret | None = None
    scram: Mapping[str, ScramCredential] = field(default_factory=dict)
    """By mechanism."""
    rights: tuple[Right, ...] = ()
    active: bool = True
    sessions_from_ms: int = 0
    """Sessions that began before this time are ended."""
    kept: str = ""
    """The password as the file keeps it."""
    id: str = ""
    """Drawn when the user is added: another user of the same name has another one."""

    @property
    def is_admin(self) -> bool:
        return ADMIN in self.rights

    def may(self, verb: str, kind: str, name: str) -> bool:
        return self.active and any(right.covers(verb, kind, name) for right in self.rights)

    def may_some(self, verb: str, kind: str) -> bool:
        """Whether there may be a thing of that kind with which the user may do this."""
        return self.active and any(
            right == ADMIN or (right.kind == kind and right.verb in (verb, "manage")) for right in self.rights
        )


class Users:
    """The users of a file. Without a ``delegation_key`` nobody logs in for another user."""

    def __init__(self, users: Iterable[PlatformUser] = (), delegation_key: bytes = b"") -> None:
        self._by_name = {user.name: user for user in users}
        self.delegation_key = delegation_key

    def __iter__(self) -> Iterator[PlatformUser]:
        return iter(self._by_name.values())

    def named(self, name: str) -> PlatformUser | None:
        """The user, if there is one who may log in."""
        user = self._by_name.get(name)
        return user if user is not None and user.active else None

    def find(self, name: str) -> PlatformUser | None:
        """The user, active or not."""
        return self._by_name.get(name)

    def having(self, user: PlatformUser) -> Users:
        """These with one added or replaced."""
        return Users({**self._by_name, user.name: user}.values(), self.delegation_key)

    def without(self, name: str) -> Users:
        return Users((user for user in self if user.name != name), self.delegation_key)

    def with_delegation_key(self) -> Users:
        """These with a new key, by which earlier delegated logins end."""
        return Users(self, secrets.token_bytes(_KEY_BYTES))

    def delegated(self, login: str) -> PlatformUser | None:
        """The user for whom a task logs in under this name, if there is one who may log in; None for every other name."""
        if not self.delegation_key or not login.startswith(_DELEGATE):
            return None
        return self.named(login.removeprefix(_DELEGATE))

    def delegate_name(self, user: str) -> str:
        return _DELEGATE + user

    def delegate_password(self, user: str) -> str:
        """The password of the delegated login of a user. Raises UsageError where the file has no key."""
        if not self.delegation_key:
            raise UsageError(
                "the file of users has no delegationKey, so that tasks cannot log in for the owners of their "
                "connectors: `tidegate up` makes one"
            )
        known = self.find(user)
        text = json.dumps([user, known.id if known is not None else ""])
        return hmac.digest(self.delegation_key, text.encode(), "sha256").hex()


def read_users(path: Path) -> Users:
    """Raises UsageError that names the file and what is wrong in it."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    items = told.get("users") if isinstance(told, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise UsageError(f"{path} must be an object whose users is a list of objects")
    try:
        users = [_user(item) for item in items]
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    counts = Counter(user.name for user in users)
    if twice := next((name for name, count in counts.items() if count > 1), None):
        raise UsageError(f"{path} has two users {twice!r}")
    return Users(users, _delegation_key(path, told.get("delegationKey", "")))


def _delegation_key(path: Path, text: Any) -> bytes:
    try:
        key = base64.b64decode(text, validate=True) if isinstance(text, str) else b"?"
    except (ValueError, binascii.Error):
        key = b"?"
    if len(key) not in (0, _KEY_BYTES):
        raise UsageError(
            f"{path}: delegationKey must be {_KEY_BYTES} bytes in base64; `tidegate up` makes it where there is none"
        )
    return key


def write_users(path: Path, users: Users) -> None:
    """Put the file in place whole, for its owner alone."""
    shown: dict[str, Any] = {"users": [_shown(user) for user in users]}
    if users.delegation_key:
        shown["delegationKey"] = base64.b64encode(users.delegation_key).decode()
    write_whole(path, json.dumps(shown, indent=2) + "\n", mode=0o600, durable=True)


def with_password(user: PlatformUser, password: str, *, now_ms: int) -> PlatformUser:
    """The user with another password, by which older sessions end."""
    from dataclasses import replace

    kept = hashed_secret(password)
    scram = {mechanism: make_credential(digest, password) for mechanism, digest in SCRAM_DIGESTS.items()}
    return replace(user, password=read_secret(kept), kept=kept, scram=scram, sessions_from_ms=now_ms)


def _user(item: dict[str, Any]) -> PlatformUser:
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a user must be text, not {name!r}")
    if unknown := sorted(set(item) - _MEMBERS):
        raise ValueError(f"user {name} has {unknown[0]!r}: {', '.join(sorted(_MEMBERS))} are known")
    kept, scram, rights = item.get("password", ""), item.get("scram", {}), item.get("rights", [])
    active, sessions = item.get("active", True), item.get("sessionsFrom", 0)
    if not isinstance(kept, str) or not isinstance(scram, dict) or not isinstance(rights, list):
        raise ValueError(f"user {name}: password is text, scram an object and rights a list")  # noqa: TRY004 - the file's fault
    if not isinstance(item.get("id", ""), str):
        raise ValueError(f"user {name}: id is text")  # noqa: TRY004 - the file's fault
    if not isinstance(active, bool) or not isinstance(sessions, int) or isinstance(sessions, bool):
        raise ValueError(f"user {name}: active is true or false, and sessionsFrom milliseconds since 1970")  # noqa: TRY004
    if unknown := sorted(set(scram) - set(SCRAM_DIGESTS)):
        raise ValueError(f"user {name} has a credential for {unknown[0]}: {', '.join(SCRAM_DIGESTS)} are known")
    try:
        return PlatformUser(
            name,
            read_secret(kept) if kept else None,
            {mechanism: ScramCredential.from_text(str(text)) for mechanism, text in scram.items()},
            tuple(Right.parse(str(right)) for right in rights),
            active,
            sessions,
            kept,
            item.get("id", ""),
        )
    except ValueError as error:
        raise ValueError(f"user {name}: {error}") from error


def _shown(user: PlatformUser) -> dict[str, Any]:
    return {
        "name": user.name,
        "password": user.kept,
        "scram": {mechanism: credential.to_text() for mechanism, credential in user.scram.items()},
        "rights": [str(right) for right in user.rights],
        "active": user.active,
        "sessionsFrom": user.sessions_from_ms,
        **({"id": user.id} if user.id else {}),
    }


class UsersFile:
    """The file as it is now, and whether a password is right. A ``Passwords`` of ``tidegate.kit.http_security.BasicAuth``.

    Hashing takes 50 ms, so a thread does it, and passwords that were right are remembered. A name that nobody has costs as much.
    """

    def __init__(self, path: Path) -> None:
        """Raises UsageError."""
        self._file = WatchedFile(path, read_users)
        self._key = secrets.token_bytes(32)
        self._right: dict[tuple[str, str], bytes] = {}
        self._nobody = read_secret(hashed_secret(secrets.token_hex()))

    @property
    def users(self) -> Users:
        return self._file.value

    @property
    def last_read(self) -> Users:
        """The users as last read, without a look at the file: every login looks."""
        return self._file.last_read

    async def verified(self, name: str, password: str) -> PlatformUser | None:
        """The user whose name and password these are, or for whom they are a delegated login; None for anybody else."""
        users = self.users
        if (owner := users.delegated(name)) is not None:
            matches = hmac.compare_digest(
                users.delegate_password(owner.name).encode(), password.encode(errors="replace")
            )
            return owner if matches else None
        user = users.named(name)
        tag = hmac.digest(self._key, password.encode(errors="replace"), "sha256")
        entry = (name, user.kept if user is not None else "")
        if user is not None and hmac.compare_digest(self._right.get(entry, b""), tag):
            return user
        secret = user.password if user is not None and user.password is not None else self._nobody
        matches = await asyncio.to_thread(secret.matches, password)
        if not matches or user is None or user.password is None:
            return None
        if len(self._right) >= _REMEMBERED:
            self._right.clear()
        self._right[entry] = tag
        return user

    async def login(self, name: str, password: str) -> LoggedIn | None:
        """``tidegate.kit.passwords.Passwords``: a delegated login has the name of its user. There are no roles."""
        user = await self.verified(name, password)
        return None if user is None else LoggedIn(user.name)

"""Users and passwords in Jetty's and Kafka Connect's property files, reloaded when they change."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from tidegate.kit.errors import UsageError
from tidegate.kit.logs import get_logger
from tidegate.kit.properties import read_properties

__all__ = ["LoggedIn", "PropertyFile", "User", "WatchedFile", "deobfuscated", "jetty_users", "plain_users"]

logger = get_logger(__name__)

T = TypeVar("T")


class LoggedIn(NamedTuple):
    """A user who has logged in."""

    name: str
    roles: frozenset[str] = frozenset()


class User(NamedTuple):
    matches: Callable[[str], bool]
    """Whether a password is the user's."""
    roles: frozenset[str] = frozenset()


class WatchedFile(Generic[T]):
    """The value that ``read`` returns for a file, reloaded when the file has changed.

    The first read raises the errors of ``read``. Later an unreadable file is logged once and the old value stays, so
    that a typo locks no one out.
    """

    def __init__(self, path: Path, read: Callable[[Path], T]) -> None:
        self._path, self._read = path, read
        self._name = str(path)
        self._stamp = self._now()
        self._value = read(path)

    @property
    def value(self) -> T:
        stamp = self._now()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._value = self._read(self._path)
            except UsageError as error:
                logger.warning(
                    "a changed file cannot be used; what it said before stays", file=str(self._path), reason=str(error)
                )
        return self._value

    @property
    def last_read(self) -> T:
        """The value as last read; unlike ``value``, this does not check the file."""
        return self._value

    def _now(self) -> tuple[int, int, int] | None:
        try:
            stat = os.stat(self._name)  # noqa: PTH116 - with every request: pathlib takes three times as long
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


class PropertyFile:
    """The users of a property file; a ``Passwords`` of ``tidegate.kit.http_security.BasicAuth``."""

    def __init__(self, path: Path, read: Callable[[Path], Mapping[str, User]]) -> None:
        """Raises UsageError if the file can't be read."""
        self._file = WatchedFile(path, read)

    async def login(self, name: str, password: str) -> LoggedIn | None:
        """None where there is no such user or the password is another."""
        user = self._file.value.get(name)
        return LoggedIn(name, user.roles) if user is not None and user.matches(password) else None


def jetty_users(path: Path) -> dict[str, User]:
    """The users of ``org.eclipse.jetty...PropertyFileLoginModule``: ``name: password,role,role``. Raises UsageError."""
    users = {}
    for name, line in read_properties(path).items():
        password, *roles = (part.strip() for part in line.split(","))
        if password.startswith("CRYPT:"):
            raise UsageError(
                f"{path}: the password of {name} is a CRYPT: one, which is not safe; use MD5:, OBF: or plain text"
            )
        try:
            matches = _matcher(password)
        except ValueError:
            raise UsageError(f"{path}: the password of {name} is no OBF: one") from None
        users[name] = User(matches, frozenset(filter(None, roles)))
    return users


def plain_users(path: Path) -> dict[str, User]:
    """The users of Kafka Connect's ``PropertyFileLoginModule``: ``name=password``, and nothing else. Raises UsageError."""
    return {name: User(partial(_same, password)) for name, password in read_properties(path).items()}


def _matcher(kept: str) -> Callable[[str], bool]:
    """Jetty's ``Credential``: plain text, or an encoding named by its prefix."""
    if kept.startswith("MD5:"):
        return partial(_same_md5, kept.removeprefix("MD5:").lower())
    return partial(_same, deobfuscated(kept) if kept.startswith("OBF:") else kept)


def _same(kept: str, password: str) -> bool:
    return hmac.compare_digest(kept.encode(errors="replace"), password.encode(errors="replace"))


def _same_md5(kept: str, password: str) -> bool:
    return _same(kept, hashlib.md5(password.encode(errors="replace")).hexdigest())  # noqa: S324 - the file's own form


def deobfuscated(text: str) -> str:
    """Decode Jetty's ``OBF:`` form, which only obscures a password. Raises ValueError."""
    rest, plain = text.removeprefix("OBF:"), bytearray()
    while rest:
        if rest[0] == "U":  # a byte above 127 takes five characters
            digits, rest = rest[1:5], rest[5:]
            plain.append(int(digits, 36) >> 8 & 0xFF)
        else:
            digits, rest = rest[:4], rest[4:]
            both = int(digits, 36)
            plain.append((both // 256 + both % 256 - 254) // 2 & 0xFF)
    return plain.decode()

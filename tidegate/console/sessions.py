"""Logins of browsers: a cookie names a session, which keeps the user's credentials on the server; every change needs the
session's token.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tidegate.clients.credentials import Credentials

__all__ = ["Session", "Sessions"]

_MOST: Final = 10_000
"""The most sessions; the one unused for longest ends."""
_LONGEST_S: Final = 12 * 3600
"""A session ends after this time even if it is used."""


@dataclass
class Session:
    """A browser's session. ``credentials`` are None where nobody logs in, and before the login."""

    id: str
    token: str
    """The token that forms and scripts of the pages send with every change."""
    credentials: Credentials | None = None
    began: float = 0.0
    used: float = field(default=0.0, compare=False)

    @property
    def user(self) -> str:
        """The user's name; empty without a login."""
        return self.credentials.user if self.credentials is not None else ""


class Sessions:
    """The sessions of a console, in memory: they end with the process.

    A session without a login is not kept: its token follows from its id.
    """

    def __init__(self, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_s, self._clock = idle_s, clock
        self._secret = secrets.token_bytes(32)
        self._logged_in: OrderedDict[str, Session] = OrderedDict()

    def find(self, session_id: str) -> Session:
        """The session of a cookie; a new one for an unknown or an ended one."""
        now = self._clock()
        session = self._logged_in.get(session_id)
        if session is not None and now - session.used <= self._idle_s and now - session.began <= _LONGEST_S:
            session.used = now
            self._logged_in.move_to_end(session_id)
            return session
        self._logged_in.pop(session_id, None)
        return self._anonymous(session_id if self._is_ours(session_id) else self._new_id())

    def log_in(self, credentials: Credentials) -> Session:
        """A new session of a user. Its id is new too, so that nobody knows it who knew the one before."""
        session = self._anonymous(self._new_id())
        session.credentials, session.began = credentials, self._clock()
        session.used = session.began
        self._logged_in[session.id] = session
        while len(self._logged_in) > _MOST:
            self._logged_in.popitem(last=False)
        return session

    def log_out(self, session: Session) -> None:
        self._logged_in.pop(session.id, None)

    def _anonymous(self, session_id: str) -> Session:
        return Session(session_id, self._mac(f"token {session_id}"))

    def _new_id(self) -> str:
        drawn = secrets.token_urlsafe(24)
        return f"{drawn}.{self._mac(drawn)}"

    def _is_ours(self, session_id: str) -> bool:
        drawn, _, mac = session_id.partition(".")
        return hmac.compare_digest(mac.encode(), self._mac(drawn).encode())

    def _mac(self, text: str) -> str:
        return hmac.digest(self._secret, text.encode(errors="replace"), "sha256").hex()

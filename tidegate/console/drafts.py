"""Changes between their review and their confirmation. They may hold secrets, so they stay on the server."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Any, Final

from tidegate.kit.errors import UsageError

__all__ = ["Drafts"]

_MOST: Final = 200


class Drafts:
    """The last drafts; each belongs to a session and is taken once."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[str, tuple[str, Any]] = OrderedDict()

    def put(self, session_id: str, value: Any) -> str:
        """The draft's name, for the form that confirms it."""
        name = secrets.token_urlsafe(16)
        self._drafts[name] = session_id, value
        while len(self._drafts) > _MOST:
            self._drafts.popitem(last=False)
        return name

    def take(self, session_id: str, name: str) -> Any:
        """Raises UsageError for a draft that is gone or another session's."""
        value = self.look(session_id, name)
        del self._drafts[name]
        return value

    def look(self, session_id: str, name: str) -> Any:
        """Like ``take``; the draft stays."""
        owner, value = self._drafts.get(name, (None, None))
        if owner != session_id:
            raise UsageError("This change is not there any more: review it again")
        return value

"""Maps users of the platform's file (``tidegate.kit.users``) to users of the events service."""

from __future__ import annotations

from events.access.accounts import Permission, User
from tidegate.kit.users import PlatformUser

__all__ = ["user_of_platform"]


def user_of_platform(user: PlatformUser) -> User:
    """``read event`` permits subscribing, ``write event`` publishing, ``manage event`` defining too; ``read platform``
    permits viewing the set-up.
    """

    def names(verb: str) -> tuple[str, ...]:
        if user.is_admin:
            return ("*",)
        return tuple(right.name for right in user.rights if right.kind == "event" and right.verb in (verb, "manage"))

    permissions = set()
    if user.may("manage", "event", "*"):
        permissions.add(Permission.CUSTOMIZE)
    if user.may_some("read", "platform"):
        permissions.add(Permission.VIEW_SETUP)
    return User(
        user.name,
        user.password,
        create=names("write"),
        read=names("read"),
        define=names("manage"),
        permissions=frozenset(permissions),
        active=user.active,
        sessions_from_ms=user.sessions_from_ms,
    )

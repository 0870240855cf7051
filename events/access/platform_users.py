"""Users of the platform's file (``tidegate.kit.users``) as the events service knows users."""

from __future__ import annotations

from events.access.accounts import Permission, User
from tidegate.kit.users import PlatformUser

__all__ = ["user_of_platform"]


def user_of_platform(user: PlatformUser) -> User:
    """``read event`` subscribes, ``write event`` publishes, ``manage event`` defines too; ``read platform`` sees the set-up."""

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

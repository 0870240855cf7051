"""Maps rights of users in the platform's file (``tidegate.kit.users``) to Karapace's resource names."""

from __future__ import annotations

from tidegate.kit.users import Users, UsersFile

__all__ = ["PlatformRights", "RightsOfUsers"]

_SUBJECT = "Subject:"


class RightsOfUsers:
    """The permissions of a file's users: for subjects by ``read``, ``write`` and ``manage subject``, for everything
    global by rights on the platform.
    """

    def __init__(self, users: Users) -> None:
        self._users = users

    def allows(self, user: str, operation: str, resource: str) -> bool:
        """Whether a user may ``Read`` or ``Write`` a resource, such as ``Subject:orders-value`` or ``Config:``."""
        known = self._users.named(user)
        if known is None:
            return False
        if resource.startswith(_SUBJECT):
            return known.may(operation.lower(), "subject", resource.removeprefix(_SUBJECT))
        return known.may("read" if operation == "Read" else "manage", "platform", "*")


class PlatformRights:
    """The rights of the current file."""

    def __init__(self, file: UsersFile) -> None:
        self._file = file

    @property
    def rights(self) -> RightsOfUsers:
        return RightsOfUsers(self._file.users)

"""Errors that refuse a login or a request because of its sender; the tree is in ``events.errors``."""

from __future__ import annotations

from typing import ClassVar

from events.errors import EventsError, InvalidSession, LoginError

__all__ = [
    "AccessError",
    "AppAccessDenied",
    "CannotCreate",
    "CannotRead",
    "GrantError",
    "InactiveUser",
    "InsufficientAccess",
    "InsufficientScope",
    "InvalidClient",
    "InvalidGrant",
    "InvalidTokenRequest",
    "UnknownClient",
    "UnsupportedGrant",
]


class GrantError(LoginError):
    """A token is refused. ``oauth_code`` is the ``error`` of RFC 6749, or Salesforce's own."""

    oauth_code: ClassVar[str] = "invalid_grant"
    code = "INVALID_GRANT"


class InvalidGrant(GrantError):
    """The proof of identity is invalid; the message says why, in Salesforce's words."""


class InvalidTokenRequest(GrantError):
    code = "INVALID_REQUEST"
    oauth_code = "invalid_request"


class UnknownClient(GrantError):
    code = "INVALID_CLIENT_ID"
    oauth_code = "invalid_client_id"

    def __init__(self) -> None:
        super().__init__("client identifier invalid")


class InvalidClient(GrantError):
    code = "INVALID_CLIENT"
    oauth_code = "invalid_client"

    def __init__(self) -> None:
        super().__init__("invalid client credentials")


class AppAccessDenied(GrantError):
    code = "INVALID_APP_ACCESS"
    oauth_code = "invalid_app_access"

    def __init__(self) -> None:
        super().__init__("user is not admin approved to access this app")


class InactiveUser(GrantError):
    code = "INACTIVE_USER"
    oauth_code = "inactive_user"

    def __init__(self) -> None:
        super().__init__("user is inactive")


class UnsupportedGrant(GrantError):
    code = "UNSUPPORTED_GRANT"
    oauth_code = "unsupported_grant_type"


class InsufficientScope(InvalidSession):
    """The session's app has no scope for APIs."""

    def __init__(self) -> None:
        super().__init__(
            "This session is not valid for use with the API: its connected app needs the scope api or full"
        )


class AccessError(EventsError):
    http_status = 403


class CannotCreate(AccessError):
    """The user may not publish this event.

    Salesforce gives the same answer as for any object that the user may not create.
    """

    code = "CANNOT_INSERT_UPDATE_ACTIVATE_ENTITY"
    http_status = 400

    def __init__(self, name: str, label: str) -> None:
        super().__init__(f"entity type cannot be inserted: {label}")
        self.name = name


class CannotRead(AccessError):
    """The user may not subscribe to this event or channel."""

    code = "INSUFFICIENT_ACCESS"

    def __init__(self, name: str) -> None:
        super().__init__(f"The user has no read access to {name}")
        self.name = name


class InsufficientAccess(AccessError):
    code = "INSUFFICIENT_ACCESS"

    def __init__(self, permission: str) -> None:
        super().__init__(
            "You do not have the level of access necessary to perform the operation you requested: "
            f"the user needs the permission {permission}"
        )

"""Authentication and authorization: users, connected apps, their secrets and rights, and their tokens.

``accounts`` has users and apps, ``access`` does logins and sessions, ``grants`` are OAuth's grant types, ``tokens`` the
token format.
"""

from events.access.access import Access, Session
from events.access.accounts import Permission, User
from events.access.ids import long_id

__all__ = ["Access", "Permission", "Session", "User", "long_id"]

"""Who may come in and do what: users, connected apps, their secrets and rights, and the tokens they get.

``accounts`` is what there is, ``access`` logs in and knows sessions, ``grants`` are OAuth's ways to a token, ``tokens`` what
a token is made of.
"""

from events.access.access import Access, Session
from events.access.accounts import Permission, User
from events.access.ids import long_id

__all__ = ["Access", "Permission", "Session", "User", "long_id"]

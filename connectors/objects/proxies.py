"""HTTP proxies on the way to a store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlsplit

from connect.api import Password, Problem, key

__all__ = ["proxy_options", "proxy_password_key", "proxy_problems", "proxy_url_key", "proxy_user_key"]


def proxy_url_key(name: str, group: str) -> Any:
    doc = "The HTTP proxy to go through, such as http://proxy:3128."
    return key(name, default="", doc=doc, importance="low", group=group)


def proxy_user_key(name: str, group: str) -> Any:
    return key(name, default="", doc="The proxy's user.", importance="low", group=group)


def proxy_password_key(name: str, group: str) -> Any:
    return key(name, default=Password(""), doc="That user's password.", importance="low", group=group)


def proxy_options(url: str, user: str, password: Password) -> dict[str, Any]:
    """obstore's client options, empty without a proxy."""
    if not url:
        return {}
    parts = urlsplit(url)
    if user:
        login = f"{quote(user, safe='')}:{quote(password.reveal(), safe='')}"
        parts = parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}")
    return {"proxy_url": parts.geturl()}


def proxy_problems(url: str, name: str) -> Iterable[Problem]:
    """Judge the URL of a proxy, the value of the key ``name``; an empty one is fine."""
    try:
        parts = urlsplit(url)
        fits = not url or (parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        fits = False
    if not fits:
        yield Problem(name, f"{name} is {url!r}; it should look like http://proxy:3128")

"""HTTP proxies on the way to a store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlsplit

from connect.api import Password, Problem

__all__ = ["proxy_options", "proxy_problems"]


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
    """What is wrong with the URL of a proxy, the value of the key ``name``; empty is fine."""
    try:
        parts = urlsplit(url)
        fits = not url or (parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        fits = False
    if not fits:
        yield Problem(name, f"{name} is {url!r}; it should look like http://proxy:3128")

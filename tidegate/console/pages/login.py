"""The login page, where users log in."""

from __future__ import annotations

import asyncio
from typing import Final

import requests
from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.credentials import Credentials
from tidegate.clients.rest import LoginRefused
from tidegate.console.console import SESSION, Console, Visit
from tidegate.console.faces import Faces
from tidegate.kit.errors import TidegateError

__all__ = ["routes"]

_AT_ONCE: Final = 2
"""Logins that are checked at one time; others wait, so that guesses do not keep the processor busy."""
_TIMEOUT_S: Final = 15.0


def routes(console: Console) -> list[Route]:
    if not console.config.asks_login:
        return []
    page = _LoginPage(console)
    return [
        console.route("/login", page.show),
        console.route("/login", page.log_in, ["POST"]),
        console.route("/logout", page.log_out, ["POST"]),
    ]


class _LoginPage:
    def __init__(self, console: Console) -> None:
        self._console, self._turn = console, asyncio.Semaphore(_AT_ONCE)

    async def show(self, visit: Visit) -> Response:
        return visit.page("login.html", next=_local(visit.query.get("next", "/")), user="", message="")

    async def log_in(self, visit: Visit) -> Response:
        form = await visit.form()
        user, password, target = form.get("user", ""), form.get("password", ""), _local(form.get("next", "/"))
        credentials = Credentials(user, password)
        async with self._turn:
            is_right = bool(user) and await self._verified(credentials)
        if not is_right:
            visit.audit("login refused", name=user)
            return visit.page(
                "login.html", 401, next=target, user=user, message="There is no such user, or the password is another."
            )
        self._console.sessions.log_out(visit.session)
        visit.session = visit.request.scope[SESSION] = self._console.sessions.log_in(credentials)
        visit.audit("login")
        return visit.redirect(target)

    async def log_out(self, visit: Visit) -> Response:
        visit.audit("logout")
        self._console.sessions.log_out(visit.session)
        visit.request.scope[SESSION] = self._console.sessions.find("")
        return visit.redirect("/login")

    async def _verified(self, credentials: Credentials) -> bool:
        """Raises TidegateError if the worker that checks logins does not answer, or asks nobody for one."""
        if self._console.users is not None:
            return await self._console.users.login(credentials.user, credentials.password) is not None
        try:
            await Faces(self._console.config, credentials).connect.call("GET", "/connectors")
        except LoginRefused:
            return False
        if not await asyncio.to_thread(_asks_login, self._console.config.connect_url, self._ca):
            raise TidegateError(
                f"The worker at {self._console.config.connect_url} asks nobody for a login, so it cannot check one: name the users "
                "with users.file, or leave out authentication.method"
            )
        return True

    @property
    def _ca(self) -> str | None:
        return self._console.config.ssl_truststore_location


def _asks_login(url: str, ca: str | None) -> bool:
    answer = requests.get(f"{url.rstrip('/')}/connectors", timeout=_TIMEOUT_S, verify=ca or True)
    return answer.status_code == 401


def _local(target: str) -> str:
    """The path of a page here; the overview for everything else, so that a link to the login leads nowhere else."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_path else "/"

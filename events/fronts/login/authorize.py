"""OAuth's web server flow: a page where a user logs in and allows a connected app to act for them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from events.access import Access
from events.access.accounts import ConnectedApp
from events.access.errors import GrantError, InvalidTokenRequest, UnknownClient
from events.access.grants import Grants
from events.fronts.login.oauth import form_of

__all__ = ["AuthorizeFront"]

_ASKED: Final = ("response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Log in</title>
<style>body{{font:16px sans-serif;max-width:22em;margin:4em auto}}label,input{{display:block;width:100%}}
input,button{{margin:.3em 0 1em;padding:.4em;box-sizing:border-box}}p.wrong{{color:#a00}}</style>
<h1>Log in</h1><p>{app} will be able to act for you.</p>{wrong}<form method="post">{hidden}
<label>User <input name="username" autocomplete="username" autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label>
<button>Log in and allow</button></form></html>"""


class AuthorizeFront:
    """``/services/oauth2/authorize``."""

    def __init__(self, access: Access, grants: Grants) -> None:
        self._access, self._grants = access, grants

    def routes(self) -> list[Route]:
        return [Route("/services/oauth2/authorize", self.authorize, methods=["GET", "POST"])]

    async def authorize(self, request: Request) -> Response:
        """Ask for user and password, and redirect the browser with a code.

        Errors about the app or its address are shown here; all others are sent to the app (RFC 6749, 4.1.2.1).
        """
        parameters: Mapping[str, str] = request.query_params if request.method == "GET" else await form_of(request)
        asked = {name: parameters[name] for name in _ASKED if parameters.get(name)}
        app = self._access.accounts.apps.get(asked.get("client_id", ""))
        if app is None:
            raise UnknownClient
        if asked.get("redirect_uri", "") not in app.callback_urls:
            raise InvalidTokenRequest("redirect_uri must match configuration")
        if asked.get("response_type") != "code":
            return _back(asked, error="unsupported_response_type", error_description="response type must be code")
        if request.method == "GET":
            try:
                self._grants.scopes(app, asked.get("scope", ""))
            except GrantError as error:
                return _back(asked, error="invalid_scope", error_description=error.message)
            return _page(app, asked)
        user = await self._access.authenticated(parameters.get("username", ""), parameters.get("password", ""))
        if user is None:
            return _page(app, asked, wrong="Please check your user name and password.")
        try:
            code = self._grants.code(
                user, app, asked["redirect_uri"], asked.get("scope", ""), asked.get("code_challenge", "")
            )
        except GrantError as error:
            return _back(asked, error=error.oauth_code, error_description=error.message)
        return _back(asked, code=code)


def _page(app: ConnectedApp, asked: Mapping[str, str], wrong: str = "") -> Response:
    hidden = "".join(f'<input type="hidden" name="{name}" value="{escape(text)}">' for name, text in asked.items())
    wrong = f'<p class="wrong">{escape(wrong)}</p>' if wrong else ""
    content = _PAGE.format(app=escape(app.client_id), wrong=wrong, hidden=hidden)
    return HTMLResponse(content, headers=_HEADERS)


def _back(asked: Mapping[str, str], **answer: str) -> Response:
    """Redirect to the app's address, which is one of its registered ones."""
    if "state" in asked:
        answer["state"] = asked["state"]
    address = asked["redirect_uri"]
    joint = "&" if urlsplit(address).query else "?"
    return RedirectResponse(address + joint + urlencode(answer), 302, headers={"Cache-Control": "no-store"})

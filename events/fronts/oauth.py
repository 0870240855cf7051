"""OAuth 2: tokens by password and by client credentials, who a token is, and its end."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Session
from events.errors import InvalidClient, InvalidSession, LoginError, UnsupportedGrant
from events.fronts.requests import base_url, session_of
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import json_response

__all__ = ["OAuthFront", "oauth_error"]

MAX_FORM_BYTES = 64 * 1024


class InvalidTokenRequest(LoginError):
    code = "INVALID_REQUEST"
    oauth_code = "invalid_request"


def oauth_error(error: TidegateError) -> Response:
    """An error in the words of RFC 6749."""
    code = error.oauth_code if isinstance(error, LoginError) else "invalid_request"
    status = error.http_status if not isinstance(error, InvalidSession) else 400
    return json_response({"error": code, "error_description": error.message}, status, Cache_Control="no-store")


class OAuthFront:
    """``/services/oauth2`` and the identity URL."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        return [
            Route("/services/oauth2/token", self.token, methods=["POST"]),
            Route("/services/oauth2/userinfo", self.userinfo, methods=["GET", "POST"]),
            Route("/services/oauth2/revoke", self.revoke, methods=["GET", "POST"]),
            Route("/id/{org}/{user}", self.identity, methods=["GET"]),
        ]

    async def token(self, request: Request) -> Response:
        try:
            session = self._grant(request, await _form(request))
        except LoginError as error:
            return oauth_error(error)
        base = base_url(request)
        issued_at = str(time.time_ns() // 1_000_000)
        identity = f"{base}/id/{self._access.org_id}/{session.user_id}"
        signature = hmac.digest(session.id.encode(), (identity + issued_at).encode(), "sha256")
        return json_response(
            {
                "access_token": session.id,
                "instance_url": base,
                "id": identity,
                "token_type": "Bearer",
                "issued_at": issued_at,
                "signature": base64.b64encode(signature).decode(),
            },
            Cache_Control="no-store",
        )

    def _grant(self, request: Request, form: dict[str, str]) -> Session:
        grant = form.get("grant_type", "")
        if grant == "password":
            return self._access.login(form.get("username", ""), form.get("password", ""))
        if grant == "client_credentials":
            client_id, client_secret = _basic(request) or (form.get("client_id", ""), form.get("client_secret", ""))
            return self._access.login_client(client_id, client_secret)
        raise UnsupportedGrant(f"grant type {grant[:60]!r} not supported; use password or client_credentials")

    async def userinfo(self, request: Request) -> Response:
        session = session_of(request, self._access)
        return json_response(self._about(request, session))

    async def identity(self, request: Request) -> Response:
        session = session_of(request, self._access)
        if request.path_params["user"][:15] != session.user_id[:15]:
            raise InvalidSession
        about = self._about(request, session)
        rest = f"{base_url(request)}/services/data/v{{version}}/"
        return json_response(
            about | {"id": about["sub"], "asserted_user": True, "username": session.user_name, "urls": {"rest": rest}}
        )

    def _about(self, request: Request, session: Session) -> dict[str, object]:
        return {
            "sub": f"{base_url(request)}/id/{self._access.org_id}/{session.user_id}",
            "user_id": session.user_id,
            "organization_id": self._access.org_id,
            "preferred_username": session.user_name,
            "nickname": session.user_name,
            "name": session.user_name,
            "email": session.user_name,
            "active": True,
            "user_type": "STANDARD",
        }

    async def revoke(self, request: Request) -> Response:
        token = request.query_params.get("token") or (await _form(request)).get("token", "")
        try:
            self._access.revoke(token)
        except InvalidSession:
            return json_response({"error": "invalid_token", "error_description": "invalid token"}, 400)
        return Response(status_code=200)


async def _form(request: Request) -> dict[str, str]:
    """The form in the body, last value per name; raises InvalidTokenRequest."""
    body = await request.body()
    try:
        if len(body) > MAX_FORM_BYTES:
            raise ValueError(f"it is {len(body)} bytes")
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError as error:
        raise InvalidTokenRequest(f"the request is not a form: {error}") from error
    return {name: values[-1] for name, values in fields.items()}


def _basic(request: Request) -> tuple[str, str] | None:
    """Client id and secret of HTTP Basic authentication, if the request has it."""
    scheme, _, coded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, secret = base64.b64decode(coded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidClient from error
    return name, secret

"""OAuth 2 over HTTP: token, introspection, user info and revocation."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Session
from events.access.errors import GrantError, InvalidClient, InvalidTokenRequest
from events.access.grants import Granted, Grants
from events.access.scopes import IDENTITY_SCOPES
from events.errors import InvalidSession
from events.fronts.requests import base_url, session_of
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import json_response

__all__ = ["OAuthFront", "form_of", "oauth_error"]

MAX_FORM_BYTES: Final = 64 * 1024


def oauth_error(error: TidegateError) -> Response:
    """An error in RFC 6749's format, always with status 400 as in Salesforce."""
    code = error.oauth_code if isinstance(error, GrantError) else "invalid_request"
    status = error.http_status if not isinstance(error, InvalidSession) else 400
    return json_response({"error": code, "error_description": error.message}, status, Cache_Control="no-store")


class OAuthFront:
    """``/services/oauth2`` and the identity URL."""

    def __init__(self, access: Access, grants: Grants) -> None:
        self._access, self._grants = access, grants

    def routes(self) -> list[Route]:
        return [
            Route("/services/oauth2/token", self.token, methods=["POST"]),
            Route("/services/oauth2/introspect", self.introspect, methods=["POST"]),
            Route("/services/oauth2/userinfo", self.userinfo, methods=["GET", "POST"]),
            Route("/services/oauth2/revoke", self.revoke, methods=["GET", "POST"]),
            Route("/id/{org}/{user}", self.identity, methods=["GET"]),
        ]

    async def token(self, request: Request) -> Response:
        granted = await self._grants.grant(await _client_form(request))
        return json_response(self._answer(base_url(request), granted), Cache_Control="no-store")

    def _answer(self, base: str, granted: Granted) -> dict[str, str]:
        """Salesforce's members. The signature is present if the client has sent the secret that it is made with."""
        issued_at = str(time.time_ns() // 1_000_000)
        identity = f"{base}/id/{self._access.org_id}/{granted.session.user_id}"
        said = {"access_token": granted.session.id}
        if granted.refresh_token:
            said["refresh_token"] = granted.refresh_token
        if granted.secret:
            made = hmac.digest(granted.secret.encode(errors="replace"), (identity + issued_at).encode(), "sha256")
            said["signature"] = base64.b64encode(made).decode()
        return said | {
            "scope": " ".join(granted.scopes),
            "instance_url": base,
            "id": identity,
            "token_type": "Bearer",
            "issued_at": issued_at,
        }

    async def introspect(self, request: Request) -> Response:
        said = await self._grants.introspect(await _client_form(request))
        if said["active"]:
            said["sub"] = f"{base_url(request)}/id/{self._access.org_id}/{said['sub']}"
        return json_response(said, Cache_Control="no-store")

    async def userinfo(self, request: Request) -> Response:
        session = session_of(request, self._access, IDENTITY_SCOPES)
        return json_response(self._about(request, session))

    async def identity(self, request: Request) -> Response:
        session = session_of(request, self._access, IDENTITY_SCOPES)
        if request.path_params["user"][:15] != session.user_id[:15]:
            raise InvalidSession
        about = self._about(request, session)
        return json_response(
            about | {"id": about["sub"], "asserted_user": True, "username": session.user_name, "status": _NO_STATUS}
        )

    def _about(self, request: Request, session: Session) -> dict[str, Any]:
        base, org, name = base_url(request), self._access.org_id, session.user_name
        data = f"{base}/services/data/v{{version}}"
        soap = f"{base}/services/Soap"
        return {
            "sub": f"{base}/id/{org}/{session.user_id}",
            "user_id": session.user_id,
            "organization_id": org,
            "preferred_username": name,
            "nickname": name,
            "name": name,
            "email": name,
            "email_verified": True,
            "given_name": None,
            "family_name": name,
            "zoneinfo": "GMT",
            "active": True,
            "user_type": "STANDARD",
            "language": "en_US",
            "locale": "en_US",
            "utcOffset": 0,
            "urls": {
                "enterprise": f"{soap}/c/{{version}}/{org[:15]}",
                "partner": f"{soap}/u/{{version}}/{org[:15]}",
                "rest": f"{data}/",
                "sobjects": f"{data}/sobjects/",
                "query": f"{data}/query/",
                "tooling_rest": f"{data}/tooling/",
                "custom_domain": base,
            },
        }

    async def revoke(self, request: Request) -> Response:
        token = request.query_params.get("token") or (await form_of(request)).get("token", "")
        try:
            self._access.revoke(token)
        except InvalidSession:
            return json_response({"error": "invalid_token", "error_description": "invalid token"}, 400)
        return Response(status_code=200)


_NO_STATUS: Final = {"created_date": None, "body": None}


async def form_of(request: Request) -> dict[str, str]:
    """The form in the body, with the last value per name. Raises InvalidTokenRequest."""
    body = await request.body()
    try:
        if len(body) > MAX_FORM_BYTES:
            raise ValueError(f"it is {len(body)} bytes")
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError as error:
        raise InvalidTokenRequest(f"the request is not a form: {error}") from error
    return {name: values[-1] for name, values in fields.items()}


async def _client_form(request: Request) -> dict[str, str]:
    """The form with client id and secret, wherever the request had them. Raises InvalidClient for an invalid header."""
    form = await form_of(request)
    scheme, _, coded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return form
    try:
        name, _, secret = base64.b64decode(coded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise InvalidClient from error
    return form | {"client_id": name, "client_secret": secret}

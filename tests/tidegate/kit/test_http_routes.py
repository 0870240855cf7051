"""The route for a request, without a server."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from tidegate.kit.http_routes import Routes


def say(text: str) -> Any:
    async def endpoint(request: Request) -> Response:
        return Response(f"{text} {request.path_params}")

    return endpoint


class Other(BaseRoute):
    """A route that decides for itself."""

    def matches(self, scope: Any) -> Any:
        return (Match.FULL, {"found": "other"}) if scope["path"].startswith("/other") else (Match.NONE, {})

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        await Response(scope["found"])(scope, receive, send)


ROUTES = Routes(
    [
        Route("/things/{name}", say("read"), methods=["GET"]),
        Route("/things/{name}", say("write"), methods=["PUT"]),
        Route("/things/first", say("never"), methods=["GET"]),
        Route("/numbers/{number:int}", say("number"), methods=["GET"]),
        Other(),
    ]
)


def ask(method: str, path: str) -> str:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    scope = {"type": "http", "method": method, "path": unquote(path), "raw_path": path.encode(), "headers": []}
    asyncio.run(ROUTES(scope, receive, send))
    return b"".join(message.get("body", b"") for message in sent).decode()


def test_the_first_route_with_path_and_method_answers_and_is_told_the_parameters() -> None:
    assert ask("GET", "/things/first") == "read {'name': 'first'}"
    assert ask("PUT", "/things/a") == "write {'name': 'a'}"
    assert ask("GET", "/numbers/7") == "number {'number': 7}"
    assert ask("GET", "/numbers/7") == "number {'number': 7}", "remembered"
    assert ask("GET", "/other/way") == "other"


@pytest.mark.parametrize(("method", "path"), [("GET", "/nowhere"), ("GET", "/numbers/x"), ("POST", "/")])
def test_an_unknown_path_is_not_found(method: str, path: str) -> None:
    for _ in range(2):
        with pytest.raises(HTTPException) as refused:
            ask(method, path)
        assert refused.value.status_code == 404


def test_an_unknown_method_is_told_which_there_are() -> None:
    with pytest.raises(HTTPException) as refused:
        ask("DELETE", "/things/a")
    assert refused.value.status_code == 405 and refused.value.headers == {"Allow": "GET, HEAD, OPTIONS, PUT"}


def test_a_slash_at_the_end_changes_nothing() -> None:
    assert ask("GET", "/things/a/") == "read {'name': 'a'}"
    assert ask("GET", "/numbers/7/") == "number {'number': 7}"
    with pytest.raises(HTTPException) as refused:
        ask("GET", "/things/a//")
    assert refused.value.status_code == 404


def test_an_encoded_slash_separates_nothing() -> None:
    assert ask("GET", "/things/a%2Fb") == "read {'name': 'a/b'}"
    assert ask("GET", "/things/a%2fb%252F") == "read {'name': 'a/b%2F'}"


def test_a_null_character_in_a_path_is_refused() -> None:
    for path in ("/things/a%00b", "/things/a%2Fb%00"):
        with pytest.raises(HTTPException) as refused:
            ask("GET", path)
        assert refused.value.status_code == 400


def test_options_names_the_methods_of_a_path() -> None:
    assert ask("OPTIONS", "/things/a") == "GET, HEAD, OPTIONS, PUT"
    with pytest.raises(HTTPException) as refused:
        ask("OPTIONS", "/nowhere")
    assert refused.value.status_code == 404


def test_parameters_are_each_requests_own() -> None:
    seen: list[dict[str, Any]] = []

    async def endpoint(request: Request) -> Response:
        seen.append(request.path_params)
        request.path_params["changed"] = True
        return Response()

    routes = Routes([Route("/{name}", endpoint)])

    async def send(_: Any) -> None: ...

    async def run() -> None:
        for _ in range(2):
            await routes({"type": "http", "method": "GET", "path": "/a", "headers": []}, None, send)  # type: ignore[arg-type]

    asyncio.run(run())
    assert seen[0] is not seen[1]


def test_an_endpoint_that_would_hold_up_others_is_refused() -> None:
    def slow(_: Request) -> Response:
        return Response()

    with pytest.raises(TypeError, match=r"/slow is to be 'async def'"):
        Routes([Route("/slow", slow)])

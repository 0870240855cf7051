"""Dispatches an HTTP request to its endpoint by a tree of path segments; caches good answers while they are valid."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from registry.domain.registry import Registry
from registry.errors import RegistryError
from registry.model.subjects import qualifier
from registry.server.routes.call import Call
from registry.server.routes.endpoint import Endpoint, WithStatus
from registry.server.security.access import VIEW
from tidegate.kit.errors import TidegateError

__all__ = ["BODY", "MEDIA_TYPES", "Dispatcher", "SchemaText", "render_error"]

MEDIA_TYPES: Final = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
"""The media types of answers. The first is used unless a client accepts only others."""

BODY: Final = "registry.body"
"""The scope key of the request's body, once it was read."""

_READABLE: Final = frozenset({*MEDIA_TYPES, "application/octet-stream"})
_MATCH: Final = "registry.match"
_KEPT_BYTES: Final = 16 * 1024 * 1024


class SchemaText(NamedTuple):
    """An answer that is the text of a schema itself."""

    text: str


class _Node:
    """A path prefix: the nodes that segments lead to, and the endpoints by method, with the parameters' names."""

    __slots__ = ("endpoints", "inner", "parameter")

    def __init__(self) -> None:
        self.inner: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.endpoints: dict[str, tuple[Endpoint, tuple[str, ...]]] = {}


class _Matched(NamedTuple):
    endpoints: dict[str, tuple[Endpoint, tuple[str, ...]]]
    values: list[str]
    context: str | None


class Dispatcher(BaseRoute):
    """All endpoints as a single route.

    Paths are split before they are decoded, so that a subject may contain any character. ``/contexts/{context}`` before
    a path means the same path inside the context.
    """

    def __init__(self, registry: Registry, endpoints: Sequence[Endpoint]) -> None:
        self._registry = registry
        self._root = _Node()
        self._cached_answers: dict[tuple[str, bytes, bytes, str, bytes], bytes] = {}
        self._kept_bytes = 0
        self._kept_at = -1
        for endpoint in endpoints:
            self._add(endpoint)

    def _add(self, endpoint: Endpoint) -> None:
        node, names = self._root, list[str]()
        for segment in endpoint.path.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            elif segment:
                node = node.inner.setdefault(segment, _Node())
        node.endpoints[endpoint.method] = endpoint, tuple(names)

    # -- routing

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        route = self._find(scope.get("raw_path") or scope["path"].encode())
        return (Match.NONE, {}) if route is None else (Match.FULL, {_MATCH: route})

    def url_path_for(self, name: str, /, **path_params: Any) -> Any:
        raise NoMatchFound(name, path_params)

    def _find(self, raw_path: bytes) -> _Matched | None:
        segments = raw_path.decode("latin-1").split("/")[1:]
        if segments and not segments[-1]:
            segments.pop()
        context: str | None = None
        if segments[:1] == ["contexts"] and len(segments) > 1:
            context = unquote(segments[1])
            segments = segments[2:]
            if not segments:
                segments, context = ["contexts", context], None
            else:
                context = qualifier(context)
        node, values = self._root, list[str]()
        for segment in segments:
            inner = node.inner.get(segment)
            if inner is None:
                if node.parameter is None or not segment:
                    return None
                values.append(unquote(segment))
                inner = node.parameter
            node = inner
        if context and segments in (["config"], ["mode"]) and node.parameter is not None:
            node, values = node.parameter, [context]  # the settings of the context itself
        return _Matched(node.endpoints, values, context) if node.endpoints else None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoints, values, context = scope[_MATCH]
        method = "GET" if scope["method"] == "HEAD" and "HEAD" not in endpoints else scope["method"]
        if method not in endpoints:
            allowed = {*endpoints, *(("HEAD",) if "GET" in endpoints else ())}
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        endpoint, names = endpoints[method]
        accepted, sent = _negotiated(scope["headers"])
        if not accepted:
            raise HTTPException(406)
        if endpoint.body is not None and sent not in _READABLE:
            raise HTTPException(415)
        scope[BODY] = body = await _read(receive) if method != "GET" else b""
        view = scope.get(VIEW)
        kept = endpoint.cached and view is None
        key = (method, scope.get("raw_path") or scope["path"].encode(), scope["query_string"], accepted, body)
        answer = self._answer_kept(key) if kept else None
        status = endpoint.status
        if answer is None:
            before = self._registry.catalog.state.revision
            call = Call(
                self._registry, dict(zip(names, values, strict=True)), scope["query_string"], body, context, view
            )
            value = endpoint.handler(call)
            if inspect.isawaitable(value):
                value = await value
            status = 204 if value is None else endpoint.status
            if isinstance(value, WithStatus):
                status, value = value
            answer = b"" if value is None else _written(value)
            # A read-only answer that was valid before and after is valid until the state changes.
            if kept and before == self._registry.catalog.state.revision:
                self._keep(key, answer)
        headers: list[tuple[bytes, bytes]] = []
        if status != 204:
            headers = [(b"content-length", str(len(answer)).encode()), (b"content-type", accepted.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer if scope["method"] != "HEAD" else b""})

    # -- cached answers

    def _answer_kept(self, key: tuple[str, bytes, bytes, str, bytes]) -> bytes | None:
        if self._kept_at != self._registry.catalog.state.revision:
            self._cached_answers.clear()
            self._kept_bytes, self._kept_at = 0, self._registry.catalog.state.revision
        return self._cached_answers.get(key)

    def _keep(self, key: tuple[str, bytes, bytes, str, bytes], answer: bytes) -> None:
        size = len(answer) + len(key[4]) + len(key[1]) + len(key[2]) + 500
        if self._kept_at != self._registry.catalog.state.revision or size > _KEPT_BYTES // 100:
            return
        if self._kept_bytes + size > _KEPT_BYTES:
            self._cached_answers.clear()
            self._kept_bytes = 0
        self._cached_answers[key] = answer
        self._kept_bytes += size


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _negotiated(headers: Sequence[tuple[bytes, bytes]]) -> tuple[str, str]:
    """The media type of the answer (empty if the client accepts none of ours), and that of the body."""
    accepted, sent = MEDIA_TYPES[0], "application/octet-stream"
    for name, value in headers:
        if name == b"accept":
            text = value.decode("latin-1").lower()
            if MEDIA_TYPES[0] not in text and "*/*" not in text and "application/*" not in text:
                accepted = next((each for each in MEDIA_TYPES if each in text), "")
        elif name == b"content-type":
            sent = value.decode("latin-1").partition(";")[0].strip().lower() or sent
    return accepted, sent


def _written(value: Any) -> bytes:
    # A lone surrogate, which a request may contain, has no UTF-8 encoding; its escape is valid JSON.
    if isinstance(value, SchemaText):
        return value.text.encode(errors="backslashreplace")
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")


def render_error(_: Request, error: TidegateError | HTTPException) -> Response:
    """Any error in Confluent's form ``{"error_code", "message"}``."""
    headers = None
    if isinstance(error, HTTPException):
        code, status, message = error.status_code, error.status_code, f"HTTP {error.status_code} {error.detail}"
        headers = error.headers
    elif isinstance(error, RegistryError):
        code, status, message = error.error_code, error.http_status, error.message
    else:
        code, status, message = error.http_status, error.http_status, error.message
    body = _written({"error_code": code, "message": message})
    return Response(body, status, headers, MEDIA_TYPES[0])

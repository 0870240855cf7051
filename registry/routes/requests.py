"""What every route does to requests and answers: media type, flags, pages, bodies, errors in Confluent's form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from registry.errors import InvalidVersion, RegistryError, Unprocessable
from registry.formats.parsed import Reference
from registry.registry import parse_version
from registry.schemas import Definition
from registry.subjects import normalize
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import json_body, json_response

__all__ = [
    "MEDIA_TYPE",
    "answer",
    "definition",
    "flag",
    "number",
    "optional_int",
    "page",
    "read_object",
    "render_error",
    "subject_of",
    "version_of",
]

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
T = TypeVar("T")


def answer(value: Any, status: int = 200) -> Response:
    return json_response(value, status, media_type=MEDIA_TYPE)


def render_error(_: Request, error: TidegateError | HTTPException) -> Response:
    if isinstance(error, HTTPException):
        code, status, message = error.status_code, error.status_code, f"HTTP {error.status_code} {error.detail}"
    elif isinstance(error, RegistryError):
        code, status, message = error.error_code, error.http_status, error.message
    else:
        code, status, message = error.http_status, error.http_status, error.message
    return answer({"error_code": code, "message": message}, status)


def subject_of(request: Request) -> str:
    return normalize(request.path_params["subject"])


def version_of(request: Request) -> int:
    return parse_version(request.path_params["version"])


def flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"


def number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    if text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) <= 11:
        return int(text)
    raise Unprocessable(f"The query parameter {name} must be a number, not '{text}'")


def page(request: Request, items: Sequence[T], default_limit: int = -1) -> list[T]:
    """The items that ``offset`` and ``limit`` ask for; a negative limit is none."""
    offset, limit = max(number(request, "offset", 0), 0), number(request, "limit", default_limit)
    return list(items[offset:] if limit < 0 else items[offset : offset + limit])


async def read_object(request: Request) -> dict[str, Any]:
    body = await json_body(request)
    if not isinstance(body, dict):
        raise Unprocessable("The request body must be a JSON object")
    return body


def definition(body: dict[str, Any]) -> Definition:
    """The schema in a request body; members this registry does not know are passed over."""
    return Definition(
        schema=_text(body, "schema", ""),
        schema_type=_text(body, "schemaType", "AVRO") or "AVRO",
        references=tuple(_reference(item) for item in _list(body, "references")),
        metadata=_json_object(body, "metadata"),
        rule_set=_json_object(body, "ruleSet"),
    )


def optional_int(body: dict[str, Any], name: str) -> int | None:
    """A number of a body; absent, null and negative numbers are "the registry decides"."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value >= 1 << 31:
        raise Unprocessable(f"{name} must be a number, not {json.dumps(value)[:100]}")
    return value if value >= 0 else None


def _text(body: dict[str, Any], name: str, default: str) -> str:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise Unprocessable(f"{name} must be text, not {json.dumps(value)[:100]}")
    return value


def _list(body: dict[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Unprocessable(f"{name} must be a list, not {json.dumps(value)[:100]}")
    return value


def _reference(item: Any) -> Reference:
    if not isinstance(item, dict):
        raise Unprocessable(f"A reference must be an object, not {json.dumps(item)[:100]}")
    name, subject, version = item.get("name"), item.get("subject"), item.get("version")
    if not isinstance(name, str) or not isinstance(subject, str) or not name or not subject:
        raise Unprocessable("A reference needs a name and a subject")
    if not isinstance(version, int) or isinstance(version, bool) or not (version == -1 or 0 < version < 1 << 31):
        raise InvalidVersion(version)
    return Reference(name, subject, version)


def _json_object(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Unprocessable(f"{name} must be an object, not {json.dumps(value)[:100]}")
    return json.dumps(value, separators=(",", ":"))

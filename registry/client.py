"""A client of any schema registry with Confluent's REST API: blocking, cached, safe to share between threads.

    RegistryClientError
    ├── NotFound         no such subject, version or id
    ├── Incompatible     the schema breaks the subject's compatibility level
    ├── Refused          anything else that has to change before it can succeed
    └── Unavailable      no registry answered, or its log did not: the same call may succeed later

Asynchronous callers run it in ``asyncio.to_thread``.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter

from registry.formats import parse as parse_schema
from registry.formats.avro.schema import AvroSchema
from registry.formats.parsed import ParsedSchema, Reference
from tidegate.kit.config import Password, config, key, non_empty, parse
from tidegate.kit.errors import RetriableError, TidegateError, UsageError

__all__ = [
    "AvroSchema",
    "Incompatible",
    "NotFound",
    "ParsedSchema",
    "Reference",
    "Refused",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryClientConfig",
    "RegistryClientError",
    "Unavailable",
]

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
_KEPT: Final = 10_000


class RegistryClientError(TidegateError):
    """What a registry answered. ``error_code`` is Confluent's; 0 where no registry answered."""

    def __init__(self, message: str, error_code: int = 0) -> None:
        super().__init__(message)
        self.error_code = error_code


class NotFound(RegistryClientError, UsageError):
    http_status = 404


class Incompatible(RegistryClientError, UsageError):
    http_status = 409


class Refused(RegistryClientError, UsageError):
    http_status = 422


class Unavailable(RegistryClientError, RetriableError):
    http_status = 503


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject. ``text`` is the schema as stored, ``references`` what it builds on."""

    subject: str
    version: int
    id: int
    text: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()


@config
class RegistryClientConfig:
    """How to reach a registry, under the names Confluent's serializers use."""

    url: str = key(
        "schema.registry.url",
        check=non_empty,
        doc="Addresses of schema registries, separated by commas; the next is tried when one does not answer.",
        importance="high",
    )
    user_info: Password | None = key(
        "basic.auth.user.info",
        default=None,
        aliases=("schema.registry.basic.auth.user.info",),
        doc="user:password for HTTP basic authentication.",
    )
    bearer_token: Password | None = key("bearer.auth.token", default=None, doc="A token for bearer authentication.")
    ca_location: str | None = key(
        "schema.registry.ssl.ca.location",
        default=None,
        aliases=("ssl.ca.location",),
        doc="A PEM file of the authorities that may have signed the registry's certificate; the system's otherwise.",
    )
    timeout_ms: int = key(
        "http.read.timeout.ms", default=30_000, doc="How long one request may take.", importance="low"
    )


class RegistryClient:
    """Schemas by id are kept for good (an id never changes its meaning), registrations by subject and text."""

    def __init__(
        self,
        url: str,
        *,
        auth: tuple[str, str] | None = None,
        bearer_token: str | None = None,
        verify: bool | str = True,
        timeout_s: float = 30,
        attempts: int = 4,
    ) -> None:
        """``url`` may be several, separated by commas. ``attempts`` are made in all, with growing pauses."""
        self._urls = [part.strip().rstrip("/") for part in url.split(",") if part.strip()]
        if not self._urls or not all(part.startswith(("http://", "https://")) for part in self._urls):
            raise Refused(f"'{url}' is no schema registry address: give http://HOST:PORT, several with commas between")
        self._timeout_s = timeout_s
        self._attempts = max(1, attempts)
        self._session = requests.Session()
        self._session.headers.update({"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE})
        self._session.verify = verify
        self._session.auth = auth
        if bearer_token is not None:
            self._session.headers["Authorization"] = f"Bearer {bearer_token}"
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=16))
        self._by_id: OrderedDict[tuple[int, str | None], ParsedSchema] = OrderedDict()
        self._ids: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> RegistryClient:
        """A client from ``schema.registry.url`` and its companions; other keys are passed over. Raises ConfigError."""
        settings = parse(RegistryClientConfig, properties)
        user, _, password = settings.user_info.reveal().partition(":") if settings.user_info else ("", "", "")
        return cls(
            settings.url,
            auth=(user, password) if settings.user_info else None,
            bearer_token=settings.bearer_token.reveal() if settings.bearer_token else None,
            verify=settings.ca_location or True,
            timeout_s=settings.timeout_ms / 1000,
        )

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- schemas

    def schema(self, schema_id: int, subject: str | None = None) -> AvroSchema:
        """The Avro schema with an id, its references resolved; ``subject`` names the context, where there are several."""
        schema = self.any_schema(schema_id, subject)
        if not isinstance(schema, AvroSchema):
            raise Refused(f"Schema {schema_id} is of type {schema.schema_type}, not AVRO")
        return schema

    def any_schema(self, schema_id: int, subject: str | None = None) -> ParsedSchema:
        """The schema with an id, whatever its type: an AvroSchema, a JsonSchema or a ProtobufSchema."""
        place = (schema_id, subject)
        with self._lock:
            if (known := self._by_id.get(place)) is not None:
                self._by_id.move_to_end(place)
                return known
        query = {} if subject is None else {"subject": subject}
        answer = self._ask("GET", f"/schemas/ids/{schema_id}", query=query)
        schema = self._parsed(answer.get("schemaType", "AVRO"), answer["schema"], _references(answer))
        with self._lock:
            _keep(self._by_id, place, schema)
        return schema

    def register(
        self,
        subject: str,
        schema: ParsedSchema | str,
        *,
        references: Sequence[Reference] = (),
        normalize: bool = False,
        schema_type: str = "AVRO",
    ) -> int:
        """The id of a schema under a subject, registered if it was not. Raises Incompatible.

        ``schema_type`` is for a schema given as text.
        """
        body = _body(schema, references, schema_type)
        return self._id_of(subject, body, normalize, f"/subjects/{_quoted(subject)}/versions")

    def id_of(
        self,
        subject: str,
        schema: ParsedSchema | str,
        *,
        references: Sequence[Reference] = (),
        normalize: bool = False,
        schema_type: str = "AVRO",
    ) -> int:
        """The id of a schema registered under a subject. Raises NotFound."""
        body = _body(schema, references, schema_type)
        return self._id_of(subject, body, normalize, f"/subjects/{_quoted(subject)}")

    def _id_of(self, subject: str, body: Mapping[str, Any], normalize: bool, path: str) -> int:
        place = (subject, body["schema"], body.get("schemaType"), str(body.get("references")), normalize)
        with self._lock:
            if (known := self._ids.get(place)) is not None:
                return known
        schema_id = int(self._ask("POST", path, query=_flags(normalize=normalize), body=body)["id"])
        with self._lock:
            _keep(self._ids, place, schema_id)
        return schema_id

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """A version of a subject; never from the cache, since "latest" moves. Raises NotFound."""
        return _registered(self._ask("GET", f"/subjects/{_quoted(subject)}/versions/{version}"))

    def parsed(self, registered: RegisteredSchema) -> AvroSchema:
        """A version as an Avro schema, its references resolved."""
        schema = self.any_parsed(registered)
        if not isinstance(schema, AvroSchema):
            raise Refused(
                f"{registered.subject} version {registered.version} is of type {schema.schema_type}, not AVRO"
            )
        return schema

    def any_parsed(self, registered: RegisteredSchema) -> ParsedSchema:
        """A version as a schema of its type, its references resolved."""
        return self._parsed(registered.schema_type, registered.text, registered.references)

    def subjects(self, prefix: str = "") -> list[str]:
        return list(self._ask("GET", "/subjects", query={"subjectPrefix": prefix} if prefix else {}))

    def versions(self, subject: str) -> list[int]:
        return list(self._ask("GET", f"/subjects/{_quoted(subject)}/versions"))

    def problems(
        self,
        subject: str,
        schema: ParsedSchema | str,
        *,
        version: int | str | None = "latest",
        references: Sequence[Reference] = (),
        schema_type: str = "AVRO",
    ) -> list[str]:
        """Why the subject would refuse the schema, empty if it would not; ``version`` None compares with all."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions" + ("" if version is None else f"/{version}")
        answer = self._ask("POST", path, query=_flags(verbose=True), body=_body(schema, references, schema_type))
        return [] if answer["is_compatible"] else list(answer.get("messages") or ["incompatible"])

    def delete_version(self, subject: str, version: int | str, *, permanent: bool = False) -> int:
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        return int(self._ask("DELETE", path, query=_flags(permanent=permanent)))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """The versions that were deleted. Forgets what was cached for the subject, here only."""
        deleted = list(self._ask("DELETE", f"/subjects/{_quoted(subject)}", query=_flags(permanent=permanent)))
        with self._lock:
            for place in [place for place in self._ids if place[0] == subject]:
                del self._ids[place]
        return deleted

    # -- settings

    def compatibility(self, subject: str | None = None) -> str:
        """The level in force for a subject, or the global one."""
        path = "/config" if subject is None else f"/config/{_quoted(subject)}"
        query = {} if subject is None else _flags(defaultToGlobal=True)
        return str(self._ask("GET", path, query=query)["compatibilityLevel"])

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        path = "/config" if subject is None else f"/config/{_quoted(subject)}"
        self._ask("PUT", path, body={"compatibility": level})

    # -- requests

    def _parsed(self, schema_type: str, text: str, references: Sequence[Reference]) -> ParsedSchema:
        texts: dict[str, str] = {}
        self._collect(references, texts)
        return parse_schema(schema_type, text, texts, strict=False)

    def _collect(self, references: Sequence[Reference], texts: dict[str, str]) -> None:
        """Texts of referenced schemas by their names, each once and after those it needs itself."""
        for reference in references:
            if reference.name in texts:
                continue
            path = f"/subjects/{_quoted(reference.subject)}/versions/{reference.version}"
            found = _registered(self._ask("GET", path, query=_flags(deleted=True)))
            self._collect(found.references, texts)
            texts[reference.name] = found.text

    def _ask(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """Send a request until it is answered. A DELETE whose answer got lost is not repeated: it may have been done."""
        failure = Unavailable("no attempt was made")
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(min(2.0, 0.1 * 2**attempt) * random.uniform(0.5, 1))
            url = self._urls[attempt % len(self._urls)] + path
            try:
                answer = self._session.request(
                    method, url, params=query, json=body, timeout=self._timeout_s, allow_redirects=False
                )
            except requests.RequestException as error:
                failure = Unavailable(f"The schema registry at {url} cannot be reached: {error}")
                if method == "DELETE" and not isinstance(error, requests.ConnectionError):
                    break
                continue
            if answer.status_code not in _RETRIED:
                return _read(answer)
            failure = Unavailable(*_described(answer))
        raise failure


def _read(answer: requests.Response) -> Any:
    if not answer.ok:
        message, code = _described(answer)
        kinds = {404: NotFound, 409: Incompatible}
        raise kinds.get(answer.status_code, Refused)(message, code)
    try:
        return answer.json()
    except ValueError as error:
        raise Refused(f"{answer.url} answered with something that is not JSON; is it a schema registry?") from error


def _described(answer: requests.Response) -> tuple[str, int]:
    """Message and error code of a failure, whoever wrote it."""
    try:
        body = answer.json()
        return str(body["message"]), int(body["error_code"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.url} answered {answer.status_code} {answer.reason}", answer.status_code


def _body(schema: ParsedSchema | str, references: Sequence[Reference], schema_type: str) -> dict[str, Any]:
    if not isinstance(schema, str):
        schema_type = schema.schema_type
        schema = schema.canonical if references else schema.resolved
    body: dict[str, Any] = {"schema": schema}
    if schema_type != "AVRO":
        body["schemaType"] = schema_type
    if references:
        body["references"] = [reference.as_json() for reference in references]
    return body


def _registered(answer: Mapping[str, Any]) -> RegisteredSchema:
    return RegisteredSchema(
        subject=str(answer["subject"]),
        version=int(answer["version"]),
        id=int(answer["id"]),
        text=str(answer["schema"]),
        schema_type=str(answer.get("schemaType") or "AVRO"),
        references=_references(answer),
    )


def _references(answer: Mapping[str, Any]) -> tuple[Reference, ...]:
    return tuple(
        Reference(str(item["name"]), str(item["subject"]), int(item["version"]))
        for item in answer.get("references") or ()
    )


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _flags(**flags: bool) -> dict[str, str]:
    return {name: "true" for name, wanted in flags.items() if wanted}


K = TypeVar("K")
V = TypeVar("V")


def _keep(cache: OrderedDict[K, V], place: K, value: V) -> None:
    cache[place] = value
    if len(cache) > _KEPT:
        cache.popitem(last=False)

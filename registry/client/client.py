"""The client: schemas, subjects and settings of a registry."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from registry.client.config import RegistryClientConfig
from registry.client.credentials import StaticToken
from registry.client.errors import NotFound, Refused
from registry.client.transport import Transport
from registry.formats import parse as parse_schema
from registry.formats.avro.schema import AvroSchema
from registry.formats.parsed import ParsedSchema, Reference
from tidegate.kit.config import parse

__all__ = ["RegisteredSchema", "RegistryClient"]

_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject. ``text`` is the schema as stored, ``references`` are the schemas it builds on."""

    subject: str
    version: int
    id: int
    text: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()


class RegistryClient:
    """Caches schemas by id forever (an id never changes its meaning), and registrations by subject and text."""

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
        """``url`` may have several addresses, separated by commas.

        ``attempts`` is the total number of attempts, with growing pauses.
        """
        self._open(
            Transport(
                url,
                auth=auth if bearer_token is None else StaticToken(bearer_token),
                verify=verify,
                timeout_s=timeout_s,
                attempts=attempts,
            )
        )

    def _open(self, transport: Transport) -> None:
        self._transport = transport
        self._by_id: OrderedDict[tuple[int, str | None], ParsedSchema] = OrderedDict()
        self._ids: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """A client from ``schema.registry.url`` and related keys; other keys are ignored. Raises ConfigError."""
        settings = parse(RegistryClientConfig, properties)
        return cls.configured(settings, settings.url)

    @classmethod
    def configured(cls, settings: RegistryClientConfig, url: str) -> Self:
        """A client for the registries at ``url`` with these settings. Raises ConfigError and Refused."""
        made = cls.__new__(cls)
        made._open(Transport.configured(settings, url))
        return made

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- schemas

    def schema(self, schema_id: int, subject: str | None = None) -> AvroSchema:
        """The Avro schema with an id, its references resolved. ``subject`` names the context, if there are several."""
        schema = self.any_schema(schema_id, subject)
        if not isinstance(schema, AvroSchema):
            raise Refused(f"Schema {schema_id} is of type {schema.schema_type}, not AVRO")
        return schema

    def any_schema(self, schema_id: int, subject: str | None = None) -> ParsedSchema:
        """The schema with an id, whatever its type: an AvroSchema, a JsonSchema or a ProtobufSchema."""
        cache_key = (schema_id, subject)
        with self._lock:
            if (known := self._by_id.get(cache_key)) is not None:
                self._by_id.move_to_end(cache_key)
                return known
        query = {} if subject is None else {"subject": subject}
        answer = self._transport.ask("GET", f"/schemas/ids/{schema_id}", query=query)
        schema = self._parsed(answer.get("schemaType", "AVRO"), answer["schema"], _references(answer))
        with self._lock:
            _keep(self._by_id, cache_key, schema)
        return schema

    def registered(self, schema_id: int) -> RegisteredSchema:
        """The schema with an id as it was registered, with the first subject that has it. Raises NotFound."""
        answer = self._transport.ask("GET", f"/schemas/ids/{schema_id}")
        versions = self._transport.ask("GET", f"/schemas/ids/{schema_id}/versions")
        first: Mapping[str, Any] = min(
            versions, key=lambda version: (version["subject"], version["version"]), default={}
        )
        return _registered(
            {**answer, "id": schema_id, "subject": first.get("subject", ""), "version": first.get("version", 0)}
        )

    def register(
        self,
        subject: str,
        schema: ParsedSchema | str,
        *,
        references: Sequence[Reference] = (),
        normalize: bool = False,
        schema_type: str = "AVRO",
    ) -> int:
        """The id of a schema under a subject. Registers the schema if necessary. Raises Incompatible.

        ``schema_type`` is for schemas passed as text.
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
        cache_key = (subject, body["schema"], body.get("schemaType"), str(body.get("references")), normalize)
        with self._lock:
            if (known := self._ids.get(cache_key)) is not None:
                return known
        schema_id = int(self._transport.ask("POST", path, query=_flags(normalize=normalize), body=body)["id"])
        with self._lock:
            _keep(self._ids, cache_key, schema_id)
        return schema_id

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """A version of a subject; never from the cache, because "latest" changes. Raises NotFound."""
        return _registered(self._transport.ask("GET", f"/subjects/{_quoted(subject)}/versions/{version}"))

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

    def referencing(self, subject: str, version: int) -> list[tuple[str, int]]:
        """The versions, as subject and number, whose schemas refer to this one directly. Sorted."""
        ids = self._transport.ask("GET", f"/subjects/{_quoted(subject)}/versions/{version}/referencedby")
        versions = [each for known in ids for each in self._transport.ask("GET", f"/schemas/ids/{known}/versions")]
        return sorted({(each["subject"], each["version"]) for each in versions})

    def subjects(self, prefix: str = "") -> list[str]:
        return list(self._transport.ask("GET", "/subjects", query={"subjectPrefix": prefix} if prefix else {}))

    def versions(self, subject: str) -> list[int]:
        return list(self._transport.ask("GET", f"/subjects/{_quoted(subject)}/versions"))

    def problems(
        self,
        subject: str,
        schema: ParsedSchema | str,
        *,
        version: int | str | None = "latest",
        references: Sequence[Reference] = (),
        schema_type: str = "AVRO",
    ) -> list[str]:
        """Why the subject would refuse the schema; empty if it would not.

        With ``version`` None it is compared with all versions.
        """
        path = f"/compatibility/subjects/{_quoted(subject)}/versions" + ("" if version is None else f"/{version}")
        answer = self._transport.ask(
            "POST", path, query=_flags(verbose=True), body=_body(schema, references, schema_type)
        )
        return [] if answer["is_compatible"] else list(answer.get("messages") or ["incompatible"])

    def delete_version(self, subject: str, version: int | str, *, permanent: bool = False) -> int:
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        return int(self._transport.ask("DELETE", path, query=_flags(permanent=permanent)))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete a subject and return the deleted versions. Also drops this client's cache for the subject."""
        deleted = list(
            self._transport.ask("DELETE", f"/subjects/{_quoted(subject)}", query=_flags(permanent=permanent))
        )
        with self._lock:
            for cache_key in [cache_key for cache_key in self._ids if cache_key[0] == subject]:
                del self._ids[cache_key]
        return deleted

    # -- settings

    def compatibility(self, subject: str | None = None) -> str:
        """The effective level of a subject, or the global one."""
        path = "/config" if subject is None else f"/config/{_quoted(subject)}"
        query = {} if subject is None else _flags(defaultToGlobal=True)
        return str(self._transport.ask("GET", path, query=query)["compatibilityLevel"])

    def own_compatibility(self, subject: str) -> str | None:
        """The level that was set for a subject; None if the global one applies."""
        return self._own(f"/config/{_quoted(subject)}", "compatibilityLevel")

    def own_mode(self, subject: str) -> str | None:
        """The mode that was set for a subject; None if the global one applies."""
        return self._own(f"/mode/{_quoted(subject)}", "mode")

    def _own(self, path: str, member: str) -> str | None:
        try:
            return str(self._transport.ask("GET", path)[member])
        except NotFound:
            return None

    def set_mode(self, subject: str, mode: str | None, *, force: bool = False) -> None:
        """Set the mode of a subject; None gives it the global one again. ``force`` allows IMPORT where there are versions."""
        path = f"/mode/{_quoted(subject)}"
        if mode is not None:
            self._transport.ask("PUT", path, query=_flags(force=force), body={"mode": mode})
            return
        with contextlib.suppress(NotFound):
            self._transport.ask("DELETE", path)

    def restore(self, versions: Sequence[RegisteredSchema]) -> None:
        """Register versions with their numbers and ids, in this order (mode IMPORT). Afterwards their subjects have no mode.

        If it stops in between, the versions so far are there, and it can be called again with the others. Raises Refused for
        an id that another schema has.
        """
        with contextlib.ExitStack() as stack:  # takes back each mode, also if one of them fails
            for subject in dict.fromkeys(version.subject for version in versions):
                stack.callback(self.set_mode, subject, None)
                self.set_mode(subject, "IMPORT", force=True)
            for version in versions:
                body = _body(version.text, version.references, version.schema_type)
                body = {**body, "id": version.id, "version": version.version}
                self._transport.ask("POST", f"/subjects/{_quoted(version.subject)}/versions", body=body)

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        path = "/config" if subject is None else f"/config/{_quoted(subject)}"
        self._transport.ask("PUT", path, body={"compatibility": level})

    def reset_compatibility(self, subject: str) -> None:
        """Give a subject the global level again. Raises NotFound if it has none of its own."""
        self._transport.ask("DELETE", f"/config/{_quoted(subject)}")

    # -- requests

    def _parsed(self, schema_type: str, text: str, references: Sequence[Reference]) -> ParsedSchema:
        texts: dict[str, str] = {}
        self._collect(references, texts)
        return parse_schema(schema_type, text, texts, strict=False)

    def _collect(self, references: Sequence[Reference], texts: dict[str, str]) -> None:
        """Collect the texts of referenced schemas by name, each once and after its own references."""
        for reference in references:
            if reference.name in texts:
                continue
            path = f"/subjects/{_quoted(reference.subject)}/versions/{reference.version}"
            registered = _registered(self._transport.ask("GET", path, query=_flags(deleted=True)))
            self._collect(registered.references, texts)
            texts[reference.name] = registered.text


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
    return {name: "true" for name, enabled in flags.items() if enabled}


K = TypeVar("K")
V = TypeVar("V")


def _keep(cache: OrderedDict[K, V], cache_key: K, value: V) -> None:
    cache[cache_key] = value
    if len(cache) > _KEPT:
        cache.popitem(last=False)

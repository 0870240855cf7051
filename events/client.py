"""A client for the events service, for threads: logs in, defines events, publishes, follows.

It uses the public protocols (SOAP login, REST, Pub/Sub API), so those parts also work with a Salesforce org.
"""

from __future__ import annotations

import io
import json
import queue
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape

import requests

from events.errors import MalformedXml
from events.model import xml
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.requests_tls import advice

if TYPE_CHECKING:
    from events.model.definitions import EventDefinition

__all__ = ["EventsClient", "PublishRefused", "ReceivedEvent", "UnknownName"]

_SUBSCRIBE: Final = "/eventbus.v1.PubSub/Subscribe"
_GET_SCHEMA: Final = "/eventbus.v1.PubSub/GetSchema"
_BATCH: Final = 100
_TIMEOUT_S: Final = 60
_LOGIN: Final = (
    '<env:Envelope xmlns:env="http://schemas.xmlsoap.org/soap/envelope/"><env:Body>'
    '<login xmlns="urn:partner.soap.sforce.com"><username>{user}</username><password>{password}</password></login>'
    "</env:Body></env:Envelope>"
)


class PublishRefused(TidegateError):
    """The events service refused an event; the message is the service's."""

    http_status = 400


class UnknownName(PublishRefused):
    """The events service knows nothing by that name, or the user may not know of it."""

    http_status = 404


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event as a subscriber receives it; ``fields`` has times as the Pub/Sub API sends them, in milliseconds."""

    event: str
    replay_id: int
    uuid: str
    fields: Mapping[str, Any]
    times: frozenset[str] = frozenset()
    """Which of the fields are times, according to the event's schema."""


_TOOLING: Final = "/services/data/v62.0/tooling"


class EventsClient:
    """One login.

    ``url`` is the REST address, ``pubsub`` the plain gRPC address as HOST:PORT (needed to follow events).
    """

    def __init__(self, url: str, *, user: str, password: str, pubsub: str | None = None, ca: str | None = None) -> None:
        """``ca`` is the file of the CA that signed the server's certificate; without it the system's CAs are used."""
        self._url, self._pubsub, self._ca = url.rstrip("/"), pubsub, ca
        self._session = requests.Session()
        if ca is not None:
            self._session.verify, self._session.trust_env = ca, False
        self._token, self._tenant = self._login(user, password)
        self._session.headers["Authorization"] = f"Bearer {self._token}"
        self._schemas: dict[str, Any] = {}

    def _login(self, user: str, password: str) -> tuple[str, str]:
        """Session and organization, from a SOAP login, which needs no connected app."""
        body = _LOGIN.format(user=escape(user), password=escape(password))
        headers = {"Content-Type": "text/xml; charset=UTF-8", "SOAPAction": "login"}
        answer = self._ask("POST", "/services/Soap/u/60.0", data=body.encode(), headers=headers)
        try:
            said = {xml.local_name(element): element.text or "" for element in xml.parse(answer.content).iter()}
            if answer.ok:
                return said["sessionId"], said["organizationId"]
        except (MalformedXml, KeyError) as error:
            raise self._other(answer) from error
        raise PublishRefused(said.get("faultstring", f"{answer.status_code} {answer.reason}"))

    def _ask(self, method: str, path: str, **more: Any) -> requests.Response:
        try:
            return self._session.request(method, self._url + path, timeout=_TIMEOUT_S, **more)
        except requests.ReadTimeout as error:
            raise TidegateError(f"the events service at {self._url} did not answer within {_TIMEOUT_S} s") from error
        except requests.exceptions.SSLError as error:
            raise TidegateError(
                f"no TLS connection to {self._url}: {error}; REQUESTS_CA_BUNDLE names the authorities that are trusted"
            ) from error
        except requests.ConnectionError as error:
            raise TidegateError(f"no events service answers at {self._url}{advice(self._url, error)}") from error
        except requests.RequestException as error:
            raise TidegateError(f"{self._url} cannot be asked: {error}") from error

    def _other(self, answer: requests.Response) -> TidegateError:
        return TidegateError(
            f"what answers at {self._url} ({answer.status_code} {answer.reason}) is no events service; give the address of its "
            "HTTP face"
        )

    def _call(self, method: str, path: str, **more: Any) -> Any:
        answer = self._ask(method, path, **more)
        if not answer.ok:
            raise (UnknownName if answer.status_code == 404 else PublishRefused)(_message(answer))
        try:
            return answer.json() if answer.content else None
        except requests.JSONDecodeError as error:
            raise self._other(answer) from error

    def events(self) -> list[dict[str, Any]]:
        """All events, as the service describes them (name, label, channel, topic, subject, schema)."""
        events: list[dict[str, Any]] = self._call("GET", "/tidegate/v1/events")
        return events

    def describe(self, event: str) -> dict[str, Any]:
        try:
            description: dict[str, Any] = self._call("GET", f"/tidegate/v1/events/{_named(event)}")
        except UnknownName as error:
            raise self._no_event(event, "see") from error
        return description

    def define_xml(self, event: str, metadata: bytes) -> dict[str, Any]:
        """Define or change an event from Salesforce's object metadata."""
        headers = {"Content-Type": "application/xml"}
        return dict(self._call("POST", "/tidegate/v1/events", params={"name": event}, data=metadata, headers=headers))

    def define_avro(self, schema: str, *, retention_ms: int | None = None) -> dict[str, Any]:
        """Define or change an event from its Avro record.

        Its topic keeps events for ``retention_ms``; -1 is forever.
        """
        params = {} if retention_ms is None else {"retentionMs": str(retention_ms)}
        headers = {"Content-Type": "application/json"}
        return dict(self._call("POST", "/tidegate/v1/events", params=params, data=schema.encode(), headers=headers))

    def define_files(self, paths: Iterable[Path], *, retention_ms: int | None = None) -> Iterator[dict[str, Any]]:
        """Define or change all events in files, folders, trees and zips of Salesforce metadata, or in Avro records
        (.avsc).

        All are read before the first one is defined. Raises InvalidDefinition with all problems.
        """
        from events.model.definitions import to_avro_text
        from events.model.metadata_tree import read_all

        for definition in [definition for path in paths for definition in read_all(path)]:
            yield self.define_avro(to_avro_text(definition), retention_ms=retention_ms)

    def define_file(self, path: Path) -> dict[str, Any]:
        """Define or change the event in one file or SFDX folder."""
        return next(self.define_files([path]))

    def definition(self, event: str) -> EventDefinition:
        from events.model.definitions import from_avro

        return from_avro(self.describe(event)["schema"])

    def define_entity(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Send changes of a captured table as change events; see docs/how-to/change-events.md for the keys."""
        return dict(self._call("POST", "/tidegate/v1/entities", json=dict(definition)))

    def entities(self) -> list[dict[str, Any]]:
        entities: list[dict[str, Any]] = self._call("GET", "/tidegate/v1/entities")
        return entities

    def forget_entity(self, name: str) -> None:
        self._call("DELETE", f"/tidegate/v1/entities/{_named(name)}")

    def limits(self) -> dict[str, dict[str, int]]:
        """The limits of the service by Salesforce's names, each with ``Max`` and ``Remaining``. Without a limit ``Max`` is 2^31 - 1."""
        limits: dict[str, dict[str, int]] = self._call("GET", "/services/data/v60.0/limits")
        return limits

    def triggers(self) -> dict[str, Any]:
        """``subscribers`` has triggers and flows as rows of EventBusSubscriber; ``problems`` has files that can't be
        loaded.
        """
        answer: dict[str, Any] = self._call("GET", "/tidegate/v1/triggers")
        return answer

    def change_trigger(self, name: str, change: Mapping[str, Any]) -> None:
        """Change a trigger. ``status`` is Running or Suspended; ``replay`` latest skips waiting events."""
        self._call("PATCH", f"/tidegate/v1/triggers/{_named(name)}", json=dict(change))

    def forget_trigger(self, name: str) -> None:
        self._call("DELETE", f"/tidegate/v1/triggers/{_named(name)}")

    def tooling_records(self, type_: str) -> list[dict[str, Any]]:
        """The records of a type of the Tooling API: PlatformEventChannel, PlatformEventChannelMember or
        ManagedEventSubscription, each with Id, FullName and Metadata.
        """
        query = {"q": f"SELECT Id, FullName, Metadata FROM {type_}"}
        answer = self._call("GET", f"{_TOOLING}/query", params=query)
        return [{key: value for key, value in record.items() if key != "attributes"} for record in answer["records"]]

    def define_tooling_record(self, type_: str, full_name: str, metadata: Mapping[str, Any]) -> bool:
        """Create a record of the Tooling API, or change that of this name. Returns whether it was created."""
        record_id = self._tooling_id(type_, full_name)
        body = {"FullName": full_name, "Metadata": dict(metadata)}
        if record_id is None:
            self._call("POST", f"{_TOOLING}/sobjects/{type_}", json=body)
        else:
            self._call("PATCH", f"{_TOOLING}/sobjects/{type_}/{record_id}", json=body)
        return record_id is None

    def delete_tooling_record(self, type_: str, full_name: str) -> None:
        """Delete a record of the Tooling API by its name. Raises UnknownName."""
        record_id = self._tooling_id(type_, full_name)
        if record_id is None:
            raise UnknownName(f"there is no {type_} {full_name}")
        self._call("DELETE", f"{_TOOLING}/sobjects/{type_}/{record_id}")

    def _tooling_id(self, type_: str, full_name: str) -> str | None:
        records = self.tooling_records(type_)
        return next((str(r["Id"]) for r in records if r["FullName"].lower() == full_name.lower()), None)

    def publish(self, event: str, fields: Mapping[str, Any]) -> str:
        """Publish one event. Returns its uuid once the log has it."""
        try:
            answer = self._call("POST", f"/services/data/v60.0/sobjects/{_named(event)}", json=dict(fields))
        except UnknownName as error:
            raise self._no_event(event, "publish") from error
        return str(answer["errors"][0]["message"])

    def _no_event(self, event: str, do: str) -> UnknownName:
        names = [known["name"] for known in self.events()]
        near = nearest_name(event, names)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(names) or 'none'}"
        return UnknownName(f"there is no event {event} that this user may {do}; {hint}")

    def _channel(self, address: str) -> Any:
        import grpc

        if self._ca is None:
            return grpc.insecure_channel(address)
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(Path(self._ca).read_bytes()))

    def follow(self, event: str, *, replay_id: int = -1) -> Iterator[ReceivedEvent]:
        """Iterate over events endlessly: new ones (-1), all retained ones (-2), or those after a replay id.

        ``event`` is a platform event's name, or a channel such as ``/data/ChangeEvents``.

        Raises TidegateError when the stream breaks. Continue from the last replay id then.
        """
        if not -2 <= replay_id < 1 << 63:
            raise UsageError(
                f"replay id {replay_id} is none; it is that of an event, -1 (from now on) or -2 (all that are kept)"
            )
        import grpc

        from events.proto import pubsub_api_pb2 as pb

        if self._pubsub is None:
            raise TidegateError("following events needs the address of the Pub/Sub API")
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        requests.put(self._first_request(event, replay_id))
        with self._channel(self._pubsub) as channel:
            call: Any = channel.stream_stream(
                _SUBSCRIBE, pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString
            )(iter(requests.get, None), metadata=self._metadata())
            try:
                for response in call:
                    for received in response.events:
                        yield self._decoded(channel, event, received)
                    if response.pending_num_requested < _BATCH // 2:
                        more = _BATCH - response.pending_num_requested
                        requests.put(pb.FetchRequest(topic_name=_channel(event), num_requested=more))
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND and not event.startswith("/"):
                    raise self._no_event(event, "follow") from error
                raise TidegateError(f"the subscription to {event} broke off: {error.details()}") from error
            finally:
                call.cancel()
                requests.put(None)

    def _metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return (("accesstoken", self._token), ("instanceurl", self._url), ("tenantid", self._tenant))

    def _first_request(self, event: str, replay_id: int) -> Any:
        from events.proto import pubsub_api_pb2 as pb

        request = pb.FetchRequest(topic_name=_channel(event), num_requested=_BATCH)
        if replay_id >= 0:
            request.replay_preset = pb.ReplayPreset.CUSTOM
            request.replay_id = replay_id.to_bytes(8, "big") + b"\0\0"
        else:
            request.replay_preset = pb.ReplayPreset.EARLIEST if replay_id == -2 else pb.ReplayPreset.LATEST
        return request

    def _decoded(self, channel: Any, event: str, received: Any) -> ReceivedEvent:
        import fastavro

        schema = self._schema(channel, received.event.schema_id)
        fields: Any = fastavro.schemaless_reader(io.BytesIO(received.event.payload), schema, None)
        replay_id = int.from_bytes(received.replay_id[:8], "big")
        times = frozenset(field["name"] for field in schema["fields"] if ":DateTime" in field.get("doc", ""))
        return ReceivedEvent(event, replay_id, received.event.id, fields, times)

    def _schema(self, channel: Any, schema_id: str) -> Any:
        import fastavro

        from events.proto import pubsub_api_pb2 as pb

        if schema_id not in self._schemas:
            ask = channel.unary_unary(_GET_SCHEMA, pb.SchemaRequest.SerializeToString, pb.SchemaInfo.FromString)
            answer = ask(pb.SchemaRequest(schema_id=schema_id), metadata=self._metadata())
            self._schemas[schema_id] = fastavro.parse_schema(json.loads(answer.schema_json))
        return self._schemas[schema_id]


def _named(name: str) -> str:
    """A name escaped for a path."""
    return quote(name, safe="")


def _channel(event: str) -> str:
    return event if event.startswith("/") else f"/event/{event}"


def _message(answer: requests.Response) -> str:
    try:
        said = answer.json()
    except requests.JSONDecodeError:
        return f"{answer.status_code} {answer.reason}"
    if isinstance(said, list) and said:
        return "; ".join(f"{entry.get('errorCode', '')}: {entry.get('message', '')}" for entry in said)
    if isinstance(said, dict):
        return str(said.get("error_description") or said.get("message") or said)
    return str(said)

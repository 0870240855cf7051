"""Sends any request of any version given as plain values, and returns its response as plain values; kio encodes and
decodes the bytes.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import importlib
import io
import itertools
import socket
import struct
import typing
import uuid
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import OutOfBoundValue

from broker.protocol.api import ApiKey
from broker.protocol.schema import Message, Response, decode

__all__ = ["CLOSED", "SILENT", "Peer", "frame_of", "request_fields"]

CLOSED: Final = {"connection": "closed"}
"""The recorded response of a broker that closes the connection."""
SILENT: Final = {"connection": "silent"}
"""Stands for a response that did not arrive."""
_CORRELATIONS: Final = itertools.count(1)
_TIMEOUT_S: Final = 6


class Peer:
    """One broker and named connections to it; sends a request on one and waits for the response."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: dict[str, socket.socket] = {}

    def ask(self, key: int, version: int, body: dict[str, Any], *, by: str = "") -> Any:
        """The answer to a request; CLOSED where the broker hung up."""
        self.send(key, version, body, by=by)
        return self.receive(key, version, by=by)

    def send(self, key: int, version: int, body: dict[str, Any], *, by: str = "") -> None:
        """Only the request: for what is answered when something else has happened."""
        frame = frame_of(key, version, body)
        self._connection(by).sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, key: int, version: int, *, by: str = "") -> Any:
        try:
            data = _received(self._connection(by))
        except TimeoutError:
            self._connections.pop(by).close()
            return SILENT
        if data is None:
            self._connections.pop(by).close()
            return CLOSED
        return _plain(_decoded(key, version, data))

    def raw(self, frame: bytes, *, by: str = "") -> bytes | None:
        """Send bytes as they are; the answer's bytes, None where the broker hung up."""
        self._connection(by).sendall(struct.pack(">i", len(frame)) + frame)
        data = _received(self._connection(by))
        if data is None:
            self._connections.pop(by).close()
        return data

    def hang_up(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connection(self, name: str) -> socket.socket:
        if name not in self._connections:
            self._connections[name] = socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_S)
        return self._connections[name]


def _received(connection: socket.socket) -> bytes | None:
    data = bytearray()
    size = 4
    while len(data) < size:
        try:
            part = connection.recv(size - len(data))
        except ConnectionResetError:
            return None
        if not part:
            return None
        data += part
        if size == 4 and len(data) >= 4:
            size = 4 + struct.unpack_from(">i", data)[0]
    assert len(data) == size, f"{len(data) - size} bytes too many"
    return bytes(data[4:])


def frame_of(key: int, version: int, body: dict[str, Any]) -> bytes:
    kind = load_request_schema(key, version)
    out = io.BytesIO()
    out.write(struct.pack(">hhih4s", key, version, next(_CORRELATIONS), 4, b"test"))
    if kind.__flexible__:
        out.write(b"\0")
    _writer(kind)(out, _built(kind, body))
    return out.getvalue()


def _decoded(key: int, version: int, data: bytes) -> Any:
    kind = load_response_schema(key, version)
    begin = 5 if kind.__flexible__ and key != 18 else 4
    try:
        value, size = _reader(kind)(data, begin)
    except OutOfBoundValue:
        # kio knows no time before 1970, which -1 stands for in some errors: our own classes do.
        return _plain(decode(_response(key), data, version, begin))
    assert begin + size == len(data), f"{len(data) - begin - size} bytes are left behind {kind.__name__} v{version}"
    return value


def _response(key: int) -> type[Response]:
    module = importlib.import_module(f"broker.protocol.messages.{ApiKey(key).name.lower()}")
    return next(
        member
        for member in vars(module).values()
        if isinstance(member, type) and issubclass(member, Response) and member is not Response
    )


_writer = functools.cache(entity_writer)
_reader = functools.cache(entity_reader)
_hints = functools.cache(typing.get_type_hints)


def request_fields(key: int, version: int) -> set[str]:
    """Names of the fields of a request, at any depth."""
    return _names(load_request_schema(key, version))


@functools.cache
def _names(kind: type) -> set[str]:
    names = set()
    for field in dataclasses.fields(kind):
        names.add(field.name)
        inner = _item(_hints(kind)[field.name])
        if dataclasses.is_dataclass(inner):
            names |= _names(inner)
    return names


def _item(hint: Any) -> Any:
    """The content of a field: the class of an array's items, or of a nullable value."""
    while typing.get_args(hint):
        hint = next(
            argument for argument in typing.get_args(hint) if argument is not type(None) and argument is not Ellipsis
        )
    return hint


def _built(kind: type, body: dict[str, Any]) -> Any:
    """A message from the fields that are given and this version has; the rest at their defaults, or zero."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        hint = _hints(kind)[field.name]
        if field.name in body:
            values[field.name] = _value(field, hint, body[field.name])
        elif field.default is dataclasses.MISSING:
            values[field.name] = _zero(field, hint)
    return kind(**values)


def _value(field: dataclasses.Field[Any], hint: Any, value: Any) -> Any:
    if value is None:
        return None
    item = _item(hint)
    if isinstance(value, list | tuple):
        return tuple(_value(field, item, element) for element in value)
    if dataclasses.is_dataclass(item):
        return _built(item, value)
    kind = field.metadata.get("kafka_type", "")
    if kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind.startswith("datetime"):
        return datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
    if kind == "uuid" and not isinstance(value, uuid.UUID):
        return uuid.UUID(value)
    return value


_ZEROS: Final = {"bool": False, "bytes": b"", "float64": 0.0, "string": "", "uuid": None, "records": None}


def _zero(field: dataclasses.Field[Any], hint: Any) -> Any:
    if type(None) in typing.get_args(hint):
        return None
    if typing.get_origin(hint) is tuple:
        return ()
    if dataclasses.is_dataclass(hint):
        return _built(hint, {})
    kind = field.metadata["kafka_type"]
    return _value(field, hint, _ZEROS.get(kind, 0))


def _named(name: str, value: Any) -> Any:
    """A field of our own classes, whose error codes are numbers."""
    return ErrorCode(value).name if name.endswith("error_code") else _plain(value)


def _plain(value: Any) -> Any:
    """Dicts, lists, numbers and text; times in milliseconds, errors by name, ids as text."""
    if isinstance(value, Message):
        return {field.name: _named(field.name, getattr(value, field.name)) for field in value.FIELDS}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(field) for field in value]
    if isinstance(value, ErrorCode):
        return value.name
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return int(value.timestamp() * 1000)
    if isinstance(value, uuid.UUID):
        return str(value)
    return value

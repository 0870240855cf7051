"""Sends any message class of ``broker.protocol`` over aiokafka's connections, for APIs that aiokafka does not know."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from aiokafka.errors import UnsupportedVersionError
from aiokafka.protocol.api import RequestHeader_v1, RequestHeader_v2, ResponseHeader_v0, ResponseHeader_v1

from broker.protocol.schema import Request, Response, decode, encode

__all__ = ["MessageRequest"]


class MessageRequest:
    """A request in the form aiokafka expects. ``highest`` is the latest version that the caller understands."""

    def __init__(self, message: Request, response: type[Response], *, highest: int) -> None:
        self.API_KEY = message.API_KEY
        self._message = message
        self._response = response
        self._highest = highest

    def prepare(self, versions: dict[int, tuple[int, int]]) -> _Prepared:
        """Raises UnsupportedVersionError if the broker does not serve it."""
        lowest, highest = versions.get(self.API_KEY, (0, -1))
        version = min(highest, self._highest)
        if version < lowest:
            raise UnsupportedVersionError(f"{type(self._message).__name__} is not served by this broker")
        return _Prepared(self._message, self._response, version)


class _Prepared:
    """A request in a chosen version."""

    def __init__(self, message: Request, response: type[Response], version: int) -> None:
        self.API_KEY = message.API_KEY
        self.API_VERSION = version
        self._message = message
        self._flexible = version >= message.FLEXIBLE_SINCE
        self.RESPONSE_TYPE = _Answer(response, version)

    def encode(self) -> bytes:
        return bytes(encode(self._message, self.API_VERSION))

    def build_request_header(self, correlation_id: int, client_id: str) -> Any:
        header = RequestHeader_v2 if self._flexible else RequestHeader_v1
        return header(self, correlation_id=correlation_id, client_id=client_id)

    def parse_response_header(self, data: BytesIO) -> Any:
        return (ResponseHeader_v1 if self._flexible else ResponseHeader_v0).decode(data)


class _Answer:
    """Decodes the answer."""

    def __init__(self, response: type[Response], version: int) -> None:
        self._response = response
        self._version = version

    def decode(self, data: BytesIO) -> Response:
        return decode(self._response, memoryview(data.read()), self._version)

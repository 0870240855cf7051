"""Encodes and decodes requests and responses."""

from __future__ import annotations

import struct
from typing import ClassVar, Self, TypeVar

from broker.protocol.codec import reader, writer
from broker.protocol.fields import Field, Message
from broker.protocol.primitives import Data, MalformedMessage, bounded_entries

__all__ = ["Field", "Message", "Request", "Response", "decode", "encode"]


class Request(Message):
    """A request; ``FLEXIBLE_SINCE`` is the first version with compact types and tagged fields."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    FLEXIBLE_SINCE: ClassVar[int]

    @classmethod
    def read(cls, data: Data, version: int, at: int) -> Self:
        """Raises MalformedMessage."""
        with bounded_entries:
            return decode(cls, data, version, at)


class Response(Message):
    """The response to the request of the same key and version."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    FLEXIBLE_SINCE: ClassVar[int]

    def write(self, version: int, out: bytearray) -> list[bytearray]:
        """The answer after the content of ``out``, as one part (Fetch has several)."""
        return [encode(self, version, out)]


M = TypeVar("M", bound=Request | Response)


def decode(cls: type[M], data: Data, version: int, at: int = 0) -> M:
    """Read one message; raises MalformedMessage. Bytes after the message are ignored, as Kafka ignores them."""
    try:
        value, _ = reader(cls, version, version >= cls.FLEXIBLE_SINCE)(data, at)
    except MalformedMessage:
        raise
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"{cls.__name__} v{version} cannot be read: {error}") from error
    return value  # type: ignore[no-any-return]


def encode(message: Request | Response, version: int, out: bytearray | None = None) -> bytearray:
    """Write one message after the content of ``out``. Fields that the version lacks are left out."""
    into = bytearray() if out is None else out
    writer(type(message), version, version >= message.FLEXIBLE_SINCE)(into, message)
    return into

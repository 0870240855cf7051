"""Reads the topics that a member of protocol type ``consumer`` subscribes to from its protocol metadata."""

from __future__ import annotations

import struct

__all__ = ["CONSUMER", "subscribed_topics"]

CONSUMER = "consumer"
"""The protocol type of ordinary consumers. The coordinator decodes no other type's metadata."""


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics named in a ConsumerProtocolSubscription, or None if the bytes are not one.

    Only the part common to all versions is read (int16 version, then an array of strings), so that future versions and
    custom fields of clients do not matter.
    """
    try:
        version, count = struct.unpack_from(">hi", metadata)
        if version < 0 or count < 0:
            return None
        position = 6
        topics = []
        for _ in range(count):
            (length,) = struct.unpack_from(">h", metadata, position)
            name = metadata[position + 2 : position + 2 + length]
            if length < 0 or len(name) < length:
                return None
            topics.append(name.decode())
            position += 2 + length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)

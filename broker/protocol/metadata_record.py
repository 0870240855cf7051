"""The base of all records of ``__cluster_metadata-0``."""

from __future__ import annotations

from typing import ClassVar

from broker.protocol.schema import Request

__all__ = ["MetadataRecord"]


class MetadataRecord(Request):
    """One record of the metadata log. It uses the codec of requests; all versions are flexible."""

    __slots__ = ()
    FLEXIBLE_SINCE = 0
    VERSION: ClassVar[int] = 0
    """The version to write."""
    LATEST: ClassVar[int] = 0
    """The latest readable version."""

"""Keys of the S3 sink: Confluent's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from connect.api import Problem, between, config, key, one_of
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.formats import FormatOptions
from connectors.s3.access import S3AccessConfig, access_problems
from tidegate.kit.config import KeyType

__all__ = ["S3SinkConfig"]

_ACLS = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "log-delivery-write",
)


@config
class S3SinkConfig(S3AccessConfig, ObjectSinkConfig):
    """How objects are stored in the bucket."""

    acl: str | None = key(
        "s3.acl.canned", default=None, check=one_of(*_ACLS), doc="Canned ACL of objects.", importance="low", group="S3"
    )
    compression: str = key(
        "s3.compression.type",
        default="none",
        check=one_of("none", "gzip"),
        doc="Compression of JSON and raw files.",
        importance="low",
        group="S3",
    )
    compression_level: int = key(
        "s3.compression.level",
        default=-1,
        type=KeyType.INT,
        check=between(-1, 9),
        doc="From 0, none, to 9, best; -1 for the default.",
        importance="low",
        group="S3",
    )
    storage_class: str = key(
        "storage.class",
        default="io.confluent.connect.s3.storage.S3Storage",
        type=KeyType.CLASS,
        doc="Accepted for compatibility: objects always go to S3.",
        importance="high",
        group="S3",
    )

    @property
    def options(self) -> FormatOptions:
        return dataclasses.replace(
            super().options, compression=self.compression, compression_level=self.compression_level
        )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from access_problems(self.url, "store.url", self.access_key, self.secret_key)

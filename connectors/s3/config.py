"""Keys of the S3 sink: Confluent's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from urllib.parse import urlsplit

from connect.api import Password, Problem, at_least, between, config, key, non_empty, one_of
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.formats import FormatOptions
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
class S3SinkConfig(ObjectSinkConfig):
    """Which bucket, and how to reach it."""

    bucket: str = key(
        "s3.bucket.name", doc="The bucket. It must be there.", importance="high", check=non_empty, group="S3"
    )
    region: str = key("s3.region", default="us-west-2", doc="The bucket's region.", group="S3")
    url: str | None = key(
        "store.url",
        default=None,
        doc="Address of a server other than Amazon's, such as http://127.0.0.1:9000.",
        importance="high",
        group="S3",
    )
    access_key: str = key(
        "aws.access.key.id",
        default="",
        doc="Access key. Unless given, it comes from where Amazon's clients look: environment, profile, instance role.",
        importance="high",
        group="S3",
    )
    secret_key: Password = key(
        "aws.secret.access.key", default="", doc="Secret of the access key.", importance="high", group="S3"
    )
    path_style: bool = key(
        "s3.path.style.access.enabled",
        default=True,
        doc="Whether a server at store.url is asked by path (host/bucket) rather than by name (bucket.host).",
        importance="low",
        group="S3",
    )
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
    retries: int = key(
        "s3.part.retries",
        default=3,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often a failed request is repeated before the worker's own retries.",
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
        if self.url and urlsplit(self.url).scheme not in ("http", "https"):
            yield Problem("store.url", f"store.url is {self.url!r}; it should look like http://127.0.0.1:9000")
        if bool(self.access_key) != bool(self.secret_key):
            yield Problem("aws.access.key.id", "give both of aws.access.key.id and aws.secret.access.key, or neither")

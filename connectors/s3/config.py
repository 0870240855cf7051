"""Keys of the S3 sink: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import KeyType, Password, Problem, between, config, key, one_of
from connectors.objects.config import ObjectSinkConfig, compression_key, compression_level_key
from connectors.s3.access import S3AccessConfig

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
    compression: str = compression_key("s3.compression.type", "S3")
    compression_level: int = compression_level_key("s3.compression.level", "S3")
    server_encryption: str = key(
        "s3.ssea.name",
        default="",
        doc="Encryption asked for with each object is not supported: set the bucket's default encryption.",
        importance="low",
        group="S3",
    )
    customer_key: Password = key(
        "s3.sse.customer.key", default="", doc="Keys of one's own are not supported.", importance="low", group="S3"
    )
    kms_key: str = key(
        "s3.sse.kms.key.id",
        default="",
        doc="Not supported with each object: set the bucket's default encryption.",
        importance="low",
        group="S3",
    )
    tagging: bool = key(
        "s3.object.tagging", default=False, doc="Tagging objects is not supported.", importance="low", group="S3"
    )
    affix: str = key(
        "s3.schema.partition.affix.type",
        default="NONE",
        check=one_of("NONE", "PREFIX", "SUFFIX", ignore_case=True),
        doc="Folders of their own for schemas are not supported.",
        importance="low",
        group="S3",
    )
    accelerated: bool = key(
        "s3.wan.mode",
        default=False,
        doc="Amazon's accelerated endpoint is not supported.",
        importance="low",
        group="S3",
    )
    part_size: int = key(
        "s3.part.size",
        default=26_214_400,
        type=KeyType.INT,
        check=between(5_242_880, 2_147_483_647),
        doc="Accepted for compatibility: the client chooses the size of the parts of an upload.",
        importance="high",
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

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from self.access_problems()
        by_bucket = (
            "objects are stored as the bucket says: set its default encryption (SSE-S3 or SSE-KMS) and leave {} out"
        )
        for name, value in (("s3.ssea.name", self.server_encryption), ("s3.sse.kms.key.id", self.kms_key)):
            if value:
                yield Problem(name, f"{name} is {value!r}; " + by_bucket.format(name))
        if self.customer_key.reveal():
            yield Problem("s3.sse.customer.key", "objects cannot be encrypted with a key of one's own (SSE-C) here")
        if self.tagging:
            yield Problem("s3.object.tagging", "objects cannot be tagged here: set s3.object.tagging=false")
        if self.affix.upper() != "NONE":
            name = "s3.schema.partition.affix.type"
            yield Problem(name, f"{name} is {self.affix!r}; folders of their own for schemas cannot be made: set NONE")
        if self.accelerated:
            yield Problem("s3.wan.mode", "the accelerated endpoint cannot be used here: set s3.wan.mode=false")

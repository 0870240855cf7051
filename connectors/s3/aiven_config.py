"""Keys of Aiven's S3 source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.api import KeyType, Password, Problem, at_least, config, key, non_empty, one_of
from connectors.objects.config import request_retries_key
from connectors.objects.formats import FileFormat, FormatOptions, format_of
from connectors.objects.layouts import Layout, Template, template_pattern
from connectors.s3.access import access_problems, role_options, role_problems

__all__ = ["AivenS3SourceConfig", "AivenS3SourceTaskConfig"]

_FORMATS: Final[Mapping[str, str]] = {
    "avro": "AvroFormat",
    "bytes": "ByteArrayFormat",
    "jsonl": "JsonFormat",
    "parquet": "ParquetFormat",
}


def _template(value: str) -> str | None:
    try:
        template_pattern(value)
    except re.error as error:
        return f"Must be a template or a regular expression: {error}"
    return None


@config
class AivenS3SourceConfig:
    """Which objects are read, and what they contain."""

    bucket: str = key(
        "aws.s3.bucket.name", doc="The bucket. It must be there.", importance="high", check=non_empty, group="S3"
    )
    region: str = key("aws.s3.region", default="us-east-1", doc="The bucket's region.", group="S3")
    url: str | None = key(
        "aws.s3.endpoint", default=None, doc="Address of a server other than Amazon's.", importance="low", group="S3"
    )
    access_key: str = key(
        "aws.access.key.id",
        default="",
        doc="Access key. Unless given, it comes from where Amazon's clients look: environment, profile, instance role.",
        group="S3",
    )
    secret_key: Password = key("aws.secret.access.key", default="", doc="Secret of the access key.", group="S3")
    role_arn: str = key("aws.sts.role.arn", default="", doc="The role to assume.", importance="low", group="S3")
    role_session: str = key(
        "aws.sts.role.session.name", default="", doc="The name of its session.", importance="low", group="S3"
    )
    role_external_id: str = key(
        "aws.sts.role.external.id",
        default="",
        doc="The id that a role in another account may ask for.",
        importance="low",
        group="S3",
    )
    prefix: str = key("aws.s3.prefix", default="", doc="What names of objects that are read begin with.", group="S3")
    retries: int = request_retries_key("aws.s3.backoff.max.retries", "S3")
    template: str = key(
        "file.name.template",
        check=_template,
        doc="A regular expression that names of objects are searched for, in which {{topic}}, {{partition}}, {{start_offset}} "
        "and {{timestamp}} stand for such parts; others are passed over.",
        importance="high",
        group="File",
    )
    file_compression: str = key(
        "file.compression.type",
        default="none",
        check=one_of("none", "gzip", "zstd", ignore_case=True),
        doc="What all objects but Parquet's are compressed with.",
        group="File",
    )
    input_format: str = key(
        "input.format",
        default="bytes",
        check=one_of(*_FORMATS, ignore_case=True),
        doc="The format of objects: avro, parquet, jsonl (JSON lines), or bytes (blocks of transformer.max.buffer.size).",
        importance="high",
        group="File",
    )
    block_bytes: int = key(
        "transformer.max.buffer.size",
        default=4096,
        type=KeyType.INT,
        check=at_least(1),
        doc="With bytes, the most bytes of a record.",
        group="File",
    )
    topic: str | None = key(
        "topic", default=None, doc="Topic to write to; by default the one that the template finds.", group="Topic"
    )
    distribution: str = key(
        "distribution.type",
        default="object_hash",
        check=one_of("object_hash", "partition", ignore_case=True),
        doc="What decides the task of an object: its name, or the partition that the template finds.",
        group="Topic",
    )
    start_key: str | None = key(
        "native.start.key", default=None, doc="Only objects with a name after this one are read.", group="Topic"
    )
    batch_rows: int = key(
        "max.poll.records",
        default=500,
        type=KeyType.INT,
        check=at_least(1),
        doc="The most records in one batch.",
        group="Topic",
    )

    path_style = True
    poll_interval_ms = 5000
    skips_errors = False
    keys_format = headers_format = None

    @property
    def client_options(self) -> Mapping[str, Any]:
        return role_options(self.role_arn, self.role_session, self.role_external_id) if self.role_arn else {}

    @property
    def format(self) -> FileFormat:
        return format_of(_FORMATS[self.input_format.lower()], FormatOptions(raw_block_bytes=self.block_bytes))

    @property
    def layout(self) -> Layout:
        return Template(
            {"bucket": self.bucket},
            self.prefix,
            self.template,
            topic=self.topic,
            by_partition=self.distribution.lower() == "partition",
            after=self.start_key,
        )

    def compression(self, name: str) -> str | None:
        del name
        kind = self.file_compression.lower()
        return None if kind == "none" or self.input_format.lower() == "parquet" else kind

    def problems(self) -> Iterable[Problem]:
        yield from access_problems(self.url, "aws.s3.endpoint", self.access_key, self.secret_key)
        if self.role_arn:
            yield from role_problems("aws.sts.role.arn", self.access_key)
        if self.topic is None and "{{topic}}" not in self.template:
            yield Problem("topic", "give a topic, or say in file.name.template where it stands: {{topic}}")
        if self.distribution.lower() == "partition" and "{{partition}}" not in self.template:
            yield Problem("file.name.template", "distribution.type=partition needs {{partition}} in file.name.template")


@config
class AivenS3SourceTaskConfig(AivenS3SourceConfig):
    """The configuration that the connector gives its tasks."""

    tasks: int = key("tidegate.s3.tasks", default=1, type=KeyType.INT, doc="How many tasks share the objects.")

"""Keys that say which bucket, and how to reach it."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from connect.api import Password, Problem, at_least, config, key, non_empty
from tidegate.kit.config import KeyType

__all__ = ["S3AccessConfig", "access_problems"]


@config
class S3AccessConfig:
    """Confluent's keys, of source and sink."""

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
    retries: int = key(
        "s3.part.retries",
        default=3,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often a failed request is repeated before the worker's own retries.",
        group="S3",
    )


def access_problems(url: str | None, url_key: str, access_key: str, secret_key: str) -> Iterable[Problem]:
    """What is wrong with an address or with only one of two keys."""
    if url and urlsplit(url).scheme not in ("http", "https"):
        yield Problem(url_key, f"{url_key} is {url!r}; it should look like http://127.0.0.1:9000")
    if bool(access_key) != bool(secret_key):
        yield Problem("aws.access.key.id", "give both of aws.access.key.id and aws.secret.access.key, or neither")

"""Keys of the Google Cloud Storage sink: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connect.api import KeyType, Password, Problem, at_least, between, config, key, non_empty
from connectors.objects.config import ObjectSinkConfig, compression_key, compression_level_key
from connectors.objects.gcs import GcsKeys, gcs_problems, gcs_settings
from connectors.objects.proxies import proxy_options, proxy_password_key, proxy_problems, proxy_url_key, proxy_user_key

__all__ = ["GcsSinkConfig"]

_UNUSED = "Accepted for compatibility"


@config
class GcsSinkConfig(ObjectSinkConfig, GcsKeys):
    """Which bucket, and how it is reached."""

    bucket: str = key(
        "gcs.bucket.name", doc="The bucket. It must be there.", importance="high", check=non_empty, group="GCS"
    )
    url: str | None = key(
        "store.url",
        default=None,
        doc="Address of a server other than Google's that has its XML API, such as http://127.0.0.1:4443.",
        group="GCS",
    )
    compression: str = compression_key("gcs.compression.type", "GCS")
    compression_level: int = compression_level_key("gcs.compression.level", "GCS")
    retries: int = key(
        "gcs.part.retries",
        default=3,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often a failed request is repeated before the worker's own retries.",
        group="GCS",
    )
    proxy_url: str = proxy_url_key("gcs.proxy.url", "GCS")
    proxy_user: str = proxy_user_key("gcs.proxy.user", "GCS")
    proxy_password: Password = proxy_password_key("gcs.proxy.password", "GCS")
    provider_class: str = key(
        "gcs.credentials.provider.class",
        default="",
        type=KeyType.CLASS,
        doc="A class of one's own that gives credentials is not supported.",
        importance="low",
        group="GCS",
    )
    part_size: int = key(
        "gcs.part.size",
        default=26_214_400,
        type=KeyType.INT,
        check=between(5_242_880, 2_147_483_647),
        doc=f"{_UNUSED}: files go in parts of 8 MiB.",
        importance="low",
        group="GCS",
    )
    backoff_ms: int = key(
        "gcs.retry.backoff.ms",
        default=200,
        check=at_least(0),
        doc=f"{_UNUSED}: the client chooses its pauses.",
        importance="low",
        group="GCS",
    )
    storage_class: str = key(
        "storage.class",
        default="io.confluent.connect.gcs.storage.GcsStorage",
        type=KeyType.CLASS,
        doc=f"{_UNUSED}: files always go to Google Cloud Storage.",
        importance="low",
        group="GCS",
    )

    @property
    def settings(self) -> Mapping[str, Any]:
        return gcs_settings(self, self.url)

    @property
    def client_options(self) -> Mapping[str, Any]:
        return {
            "allow_http": bool(self.url and self.url.startswith("http:")),
            **proxy_options(self.proxy_url, self.proxy_user, self.proxy_password),
        }

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from gcs_problems(self, self.url, "store.url")
        yield from proxy_problems(self.proxy_url, "gcs.proxy.url")
        if self.provider_class:
            name = "gcs.credentials.provider.class"
            yield Problem(
                name,
                f"{name} is {self.provider_class}: a class of one's own cannot be loaded here. Give gcs.credentials.path or "
                "gcs.credentials.json, or let credentials come from the environment",
            )

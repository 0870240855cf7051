"""How the sink and the source reach a bucket: Confluent's keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connect.api import KeyType, Password, Problem, at_least, config, key, non_empty
from connectors.objects.buckets import Bucket
from connectors.objects.config import request_retries_key
from connectors.objects.gcs import GcsKeys, gcs_problems, gcs_settings
from connectors.objects.proxies import proxy_options, proxy_password_key, proxy_problems, proxy_url_key, proxy_user_key

__all__ = ["UNUSED", "GcsAccess"]

UNUSED = "Accepted for compatibility"


@config
class GcsAccess(GcsKeys):
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
    retries: int = request_retries_key("gcs.part.retries", "GCS")
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
    backoff_ms: int = key(
        "gcs.retry.backoff.ms",
        default=200,
        check=at_least(0),
        doc=f"{UNUSED}: the client chooses its pauses.",
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

    def opened(self) -> Bucket:
        return Bucket(f"gs://{self.bucket}", self.settings, self.client_options, retries=self.retries)

    def access_problems(self) -> Iterable[Problem]:
        yield from gcs_problems(self, self.url, "store.url")
        yield from proxy_problems(self.proxy_url, "gcs.proxy.url")
        if self.provider_class:
            name = "gcs.credentials.provider.class"
            yield Problem(
                name,
                f"{name} is {self.provider_class}: a class of one's own cannot be loaded here. Give gcs.credentials.path or "
                "gcs.credentials.json, or let credentials come from the environment",
            )

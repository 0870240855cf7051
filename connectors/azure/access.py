"""How the sink and the source reach a container: Confluent's keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connect.api import Password, Problem, at_least, config, inherited, key, non_empty, one_of
from connectors.objects.azure import AzureKeys, azure_problems, azure_settings
from connectors.objects.config import request_retries_key
from connectors.objects.proxies import proxy_options, proxy_password_key, proxy_problems, proxy_url_key, proxy_user_key

__all__ = ["UNUSED", "AzureAccess"]

UNUSED = "Accepted for compatibility"


@config
class AzureAccess(AzureKeys):
    """Which container, and how it is reached."""

    azure_account: str = inherited(check=non_empty, doc="The storage account.", default="", importance="high")
    container: str = key(
        "azblob.container.name",
        default="default",
        check=non_empty,
        doc="The container. It must be there.",
        group="Azure",
    )
    url: str | None = key(
        "store.url",
        default=None,
        doc="Address of a server other than Azure's, with the account: http://127.0.0.1:10000/devstoreaccount1.",
        group="Azure",
    )
    retries: int = request_retries_key("azblob.retry.retries", "Azure")
    timeout_ms: int = key(
        "azblob.connection.timeout.ms",
        default=30_000,
        check=at_least(1),
        doc="The most milliseconds of one request: a file is written in blocks of 8 MiB.",
        group="Azure",
    )
    proxy_url: str = proxy_url_key("azblob.proxy.url", "Azure")
    proxy_user: str = proxy_user_key("azblob.proxy.user", "Azure")
    proxy_password: Password = proxy_password_key("azblob.proxy.password", "Azure")
    retry_type: str = key(
        "azblob.retry.type",
        default="EXPONENTIAL",
        check=one_of("EXPONENTIAL", "FIXED", ignore_case=True),
        doc=f"{UNUSED}: pauses grow.",
        importance="low",
        group="Azure",
    )
    backoff_ms: int = key(
        "azblob.retry.backoff.ms",
        default=4000,
        check=at_least(0),
        doc=f"{UNUSED}: the client chooses its pauses.",
        importance="low",
        group="Azure",
    )
    most_backoff_ms: int = key(
        "azblob.retry.max.backoff.ms",
        default=120_000,
        check=at_least(1),
        doc=f"{UNUSED}, likewise.",
        importance="low",
        group="Azure",
    )
    secondary_host: str = key(
        "azblob.retry.secondary.host",
        default="",
        doc=f"{UNUSED}: a secondary host only reads.",
        importance="low",
        group="Azure",
    )

    @property
    def settings(self) -> Mapping[str, Any]:
        return azure_settings(self, self.url)

    @property
    def client_options(self) -> Mapping[str, Any]:
        return {
            "timeout": f"{self.timeout_ms}ms",
            "allow_http": bool(self.url and self.url.startswith("http:")),
            **proxy_options(self.proxy_url, self.proxy_user, self.proxy_password),
        }

    def access_problems(self) -> Iterable[Problem]:
        yield from azure_problems(self, self.url, "store.url")
        yield from proxy_problems(self.proxy_url, "azblob.proxy.url")

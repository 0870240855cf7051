"""How to log in to Azure Blob Storage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from connect.api import Password, Problem, config, key

__all__ = ["AzureKeys", "azure_problems", "azure_settings"]

_AZURE: Final = "Azure"


@config
class AzureKeys:
    """The account, in Confluent's words."""

    azure_account: str = key(
        "azblob.account.name",
        default="",
        doc="The storage account. By default that of the environment (AZURE_STORAGE_ACCOUNT_NAME).",
        importance="high",
        group=_AZURE,
    )
    azure_key: Password = key(
        "azblob.account.key",
        default=Password(""),
        doc="The account's key. Without it and without azblob.sas.token, the login comes from where Azure's tools look: environment "
        "(AZURE_CLIENT_ID and others), workload identity, managed identity.",
        importance="high",
        group=_AZURE,
    )
    azure_sas: Password = key(
        "azblob.sas.token",
        default=Password(""),
        doc="A shared access signature, in place of the account's key.",
        importance="high",
        group=_AZURE,
    )


def azure_settings(keys: AzureKeys, endpoint: str | None) -> dict[str, Any]:
    """obstore's settings."""
    settings: dict[str, Any] = {}
    if keys.azure_account:
        settings["account_name"] = keys.azure_account
    if keys.azure_key.reveal():
        settings["account_key"] = keys.azure_key.reveal()
    if keys.azure_sas.reveal():
        settings["sas_key"] = keys.azure_sas.reveal().lstrip("?")
    if endpoint:
        settings["endpoint"] = endpoint.rstrip("/")
    return settings


def azure_problems(keys: AzureKeys, endpoint: str | None, endpoint_key: str) -> Iterable[Problem]:
    if keys.azure_key.reveal() and keys.azure_sas.reveal():
        yield Problem("azblob.sas.token", "give one of azblob.account.key and azblob.sas.token")
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        example = f"http://127.0.0.1:10000/{keys.azure_account or 'account'}"
        yield Problem(endpoint_key, f"{endpoint_key} is {endpoint!r}; it should look like {example}")

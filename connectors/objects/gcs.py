"""How to log in to Google Cloud Storage."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from connect.api import Password, Problem, config, key

__all__ = ["GcsKeys", "gcs_problems", "gcs_settings"]

_GCS: Final = "GCS"


@config
class GcsKeys:
    """A service account, in Confluent's words."""

    gcs_credentials_path: str = key(
        "gcs.credentials.path",
        default="",
        doc="The JSON file of a service account. Without it and without gcs.credentials.json, the login comes from where Google's "
        "tools look: environment (GOOGLE_APPLICATION_CREDENTIALS), gcloud, the machine's account.",
        importance="high",
        group=_GCS,
    )
    gcs_credentials_json: Password = key(
        "gcs.credentials.json",
        default=Password(""),
        doc="The content of such a file, in place of gcs.credentials.path.",
        importance="high",
        group=_GCS,
    )


def gcs_settings(keys: GcsKeys, endpoint: str | None) -> dict[str, Any]:
    """obstore's settings."""
    settings: dict[str, Any] = {}
    if keys.gcs_credentials_path:
        settings["service_account"] = keys.gcs_credentials_path
    if keys.gcs_credentials_json.reveal():
        settings["service_account_key"] = keys.gcs_credentials_json.reveal()
    if endpoint:
        settings["base_url"] = endpoint.rstrip("/")
    return settings


def gcs_problems(keys: GcsKeys, endpoint: str | None, endpoint_key: str) -> Iterable[Problem]:
    """Of the file only its path is judged: it may be there only where tasks run."""
    if keys.gcs_credentials_path and keys.gcs_credentials_json.reveal():
        yield Problem("gcs.credentials.json", "give one of gcs.credentials.path and gcs.credentials.json")
    if keys.gcs_credentials_path and not Path(keys.gcs_credentials_path).is_absolute():
        name = "gcs.credentials.path"
        yield Problem(name, f"{name} is {keys.gcs_credentials_path!r}; it should be an absolute path")
    try:
        json.loads(keys.gcs_credentials_json.reveal() or "{}")
    except ValueError:
        yield Problem("gcs.credentials.json", "gcs.credentials.json is not JSON: it should be a service account's file")
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        yield Problem(endpoint_key, f"{endpoint_key} is {endpoint!r}; it should look like http://127.0.0.1:4443")

"""Creates records in a Salesforce org through its REST API, for a flow's ``create``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests

from events.flows.templates import FlowFailed

__all__ = ["Org", "OrgLogin"]

_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class OrgLogin:
    """The login method: OAuth's password flow if there is a user, otherwise client credentials."""

    url: str
    client_id: str
    client_secret: str
    user: str = ""
    password: str = ""
    version: str = "60.0"


class Org:
    """One login, renewed when it has expired. Used by one thread."""

    def __init__(self, login: OrgLogin) -> None:
        self._login = login
        self._session = requests.Session()
        self._instance: str | None = None

    def create(self, kind: str, fields: Mapping[str, Any], *, key: str) -> str:
        """Create a record and return its id. ``key`` is sent as Idempotency-Key. Raises FlowFailed."""
        answer = self._post(kind, fields, key)
        if answer.status_code == 401:
            self._instance = None
            answer = self._post(kind, fields, key)
        if not answer.ok:
            raise FlowFailed(f"creating {kind}: {answer.status_code} {answer.text[:300]}")
        return str(answer.json().get("id", ""))

    def _post(self, kind: str, fields: Mapping[str, Any], key: str) -> requests.Response:
        try:
            url = f"{self._instance or self._enter()}/services/data/v{self._login.version}/sobjects/{kind}"
            return self._session.post(url, json=dict(fields), headers={"Idempotency-Key": key}, timeout=_TIMEOUT_S)
        except requests.RequestException as error:
            raise FlowFailed(f"creating {kind}: {self._login.url} does not answer ({type(error).__name__})") from error

    def _enter(self) -> str:
        login = self._login
        form = {"client_id": login.client_id, "client_secret": login.client_secret}
        if login.user:
            form |= {"grant_type": "password", "username": login.user, "password": login.password}
        else:
            form["grant_type"] = "client_credentials"
        url = login.url.rstrip("/")
        answer = self._session.post(f"{url}/services/oauth2/token", data=form, timeout=_TIMEOUT_S)
        if not answer.ok:
            raise FlowFailed(f"logging in to {url}: {answer.status_code} {answer.text[:300]}")
        said = answer.json()
        self._session.headers["Authorization"] = f"Bearer {said['access_token']}"
        self._instance = str(said["instance_url"]).rstrip("/")
        return self._instance

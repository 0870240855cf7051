"""The only module that imports simple-salesforce: logins, single calls and the collections API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import requests
from simple_salesforce import Salesforce
from simple_salesforce.login import SalesforceLogin
from simple_salesforce.util import exception_handler

from connect.api import ConnectError, RetriableConnectError
from connectors.salesforce.config import SalesforceConfig
from connectors.salesforce.errors import RETRIABLE_CODES, SessionExpired, is_passing, translating
from connectors.salesforce.signing import signing_key
from tidegate.kit.requests_abort import abort, abortable_session

__all__ = ["SalesforceClient"]

T = TypeVar("T")
_OWN_HOSTS: Final = ".salesforce.com"


class SalesforceClient:
    """A session with one org.

    It logs in at the first use, and again when the session has expired. For use from one thread, except ``abort``.
    """

    def __init__(self, config: SalesforceConfig) -> None:
        self._config = config
        self._http = self.new_session()
        self._salesforce: Salesforce | None = None

    def close(self) -> None:
        self._http.close()

    def abort(self) -> None:
        """May be called from any thread: makes the running request and all later ones end with an error."""
        abort(self._http)

    def new_session(self) -> requests.Session:
        """An HTTP session with the connector's settings, for protocols that simple-salesforce does not support; ended
        by ``abort``.
        """
        session = abortable_session()
        if self._config.http_proxy:
            session.proxies = {"https": f"http://{_proxy_login(self._config)}{self._config.http_proxy}"}
        session.request = _with_defaults(session, self._config)  # type: ignore[method-assign]
        return session

    @property
    def instance_url(self) -> str:
        return f"https://{self._logged_in().sf_instance}"

    @property
    def session_id(self) -> str:
        return str(self._logged_in().session_id)

    def forget_session(self) -> None:
        """Log in again at the next call."""
        self._salesforce = None

    def describe(self, name: str) -> Mapping[str, Any]:
        """Salesforce's description of an object or event; raises ConnectError when it does not exist."""
        description: Mapping[str, Any] = self._call(
            f"describing {name}", lambda sf: sf.restful(f"sobjects/{name}/describe")
        )
        return description

    def log_in(self) -> None:
        """Log in unless there is a session; raises ConnectError when the login is rejected."""
        self._logged_in()

    def event_schema(self, schema_id: str) -> Mapping[str, Any]:
        """The Avro schema with this id."""
        return self._compact(f"event/eventSchema/{quote(schema_id, safe='')}")

    def event_schema_of(self, name: str) -> Mapping[str, Any]:
        """The current Avro schema of an event; raises ConnectError when the event does not exist."""
        return self._compact(f"sobjects/{name}/eventSchema")

    def _compact(self, path: str) -> Mapping[str, Any]:
        asked = {"payloadFormat": "COMPACT"}
        answer: Mapping[str, Any] = self._call(f"reading {path}", lambda sf: sf.restful(path, params=asked))
        return answer

    def create(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Create up to 200 records, each with its ``attributes.type``; one result each, in their order."""
        return self._collection("POST", "composite/sobjects", {"allOrNone": False, "records": records})

    def update(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Update up to 200 records by their ``Id``."""
        return self._collection("PATCH", "composite/sobjects", {"allOrNone": False, "records": records})

    def upsert(self, name: str, id_field: str, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Create or update up to 200 records by an external id."""
        return self._collection(
            "PATCH", f"composite/sobjects/{name}/{id_field}", {"allOrNone": False, "records": records}
        )

    def delete(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Delete up to 200 records."""
        query = {"ids": ",".join(ids), "allOrNone": "false"}
        path = "composite/sobjects"
        results: list[dict[str, Any]] = self._call(
            "deleting", lambda sf: sf.restful(path, params=query, method="DELETE")
        )
        return results

    def _collection(self, method: str, path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        text = json.dumps(body, default=str)
        results: list[dict[str, Any]] = self._call(
            f"{method} {path}", lambda sf: sf.restful(path, method=method, data=text)
        )
        return results

    def query(self, soql: str) -> list[dict[str, Any]]:
        """The first records, up to 2000, that a SOQL query returns."""
        answer: dict[str, Any] = self._call(f"asking {soql}", lambda sf: sf.restful("query", params={"q": soql}))
        return list(answer["records"])

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json; charset=utf-8",
        params: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """A request below ``/services/data/vNN.0/``, for features that simple-salesforce lacks; raises on an error
        response.
        """
        headers = {"Content-Type": content_type} if body is not None else {}

        def ask(salesforce: Salesforce) -> requests.Response:
            answer = self._http.request(
                method,
                f"{salesforce.base_url}{path}",
                data=body,
                params=params,
                headers=headers | {"Authorization": f"Bearer {salesforce.session_id}"},
            )
            if not answer.ok:
                exception_handler(answer, path)
            return answer

        return self._call(f"{method} {path}", ask)

    def call_json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """``call`` with a JSON object as body and response."""
        answer = self.call(method, path, None if body is None else json.dumps(body).encode())
        try:
            decoded = answer.json()
        except requests.JSONDecodeError:
            decoded = None
        if not isinstance(decoded, dict):
            raise RetriableConnectError(f"{method} {path}: the answer is no JSON object: {answer.text[:100]}")
        return decoded

    def _call(self, doing: str, call: Callable[[Salesforce], T]) -> T:
        """Repeats the call once with a new login when the session had expired."""
        try:
            with translating(doing):
                return call(self._logged_in())
        except SessionExpired:
            self.forget_session()
            with translating(doing):
                return call(self._logged_in())

    def _logged_in(self) -> Salesforce:
        if self._salesforce is None:
            with translating(f"logging in at {self._config.instance}"):
                session_id, instance = self._login()
            self._salesforce = Salesforce(
                session_id=session_id, instance_url=instance, version=self._config.api_version, session=self._http
            )
        return self._salesforce

    def _login(self) -> tuple[str, str]:
        """(session id, instance URL). Uses SOAP without a consumer key, else the OAuth flow for the grant type."""
        config, grant = self._config, self._config.grant_type.upper()
        host = urlsplit(config.instance).hostname or ""
        if grant == "PASSWORD" and not config.consumer_key and host.endswith(_OWN_HOSTS):
            session_id, instance = SalesforceLogin(
                session=self._http,
                username=config.username,
                password=config.password.reveal(),
                security_token=config.security_token.reveal(),
                sf_version=config.api_version,
                domain=host.removesuffix(_OWN_HOSTS),
            )
            return session_id, f"https://{instance}"
        if grant == "JWT_BEARER":
            return self._token(
                {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": self._assertion()}
            )
        client = {"client_id": config.consumer_key, "client_secret": config.consumer_secret.reveal()}
        if grant == "CLIENT_CREDENTIALS":
            return self._token({"grant_type": "client_credentials", **client})
        password = config.password.reveal() + config.security_token.reveal()
        return self._token({"grant_type": "password", "username": config.username, "password": password, **client})

    def _token(self, form: Mapping[str, str]) -> tuple[str, str]:
        answer = self._http.post(f"{self._config.instance.rstrip('/')}/services/oauth2/token", data=form)
        try:
            said = answer.json()
        except requests.JSONDecodeError:
            said = {"error": answer.reason}
        if answer.ok:
            return str(said["access_token"]), str(said["instance_url"])
        words = f"{said.get('error')}: {said.get('error_description', '')}"
        if is_passing(answer.status_code) or said.get("error") in RETRIABLE_CODES:
            raise RetriableConnectError(f"logging in at {self._config.instance}: {words}")
        raise ConnectError(f"logging in at {self._config.instance} as {form.get('username', 'the app')}: {words}")

    def _assertion(self) -> str:
        import time

        import jwt

        config = self._config
        claims = {
            "iss": config.consumer_key,
            "sub": config.username,
            "aud": config.instance,
            "exp": int(time.time()) + 180,
        }
        return jwt.encode(claims, signing_key(config), algorithm="RS256")


def _proxy_login(config: SalesforceConfig) -> str:
    if config.proxy_scheme == "NONE":
        return ""
    return f"{quote(config.proxy_user, safe='')}:{quote(config.proxy_password.reveal(), safe='')}@"


def _with_defaults(session: requests.Session, config: SalesforceConfig) -> Any:
    """Requests with our timeout, because simple-salesforce sets none and a silent server would block the task for ever;
    and with our certificate authorities, because REQUESTS_CA_BUNDLE in the environment would override the session's.
    """
    original = session.request

    def request(method: str, url: str, **more: Any) -> requests.Response:
        more.setdefault("timeout", config.connection_timeout_ms / 1000)
        if config.ca_file:
            more.setdefault("verify", config.ca_file)
        return original(method, url, **more)

    return request

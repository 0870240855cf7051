"""Calls the API with ``requests``: credentials, fetching tokens when needed, retries."""

from __future__ import annotations

import threading
from typing import Final

import requests

from connect.api import ConnectError, Password, RetriableConnectError, get_logger
from connectors.http.requests_of import HttpRequest
from connectors.http.settings import HttpSettings, OAuth
from tidegate.kit.requests_abort import abort, abortable_session

__all__ = ["HttpClient", "Refused"]

logger = get_logger(__name__)

_SHOWN: Final = 500
_NOT_TAKEN: Final = 300
_UNAUTHORIZED: Final = 401


class Refused(ConnectError):
    """The API rejected a request, after all retries."""


class _NoToken(Exception):
    """The token server is temporarily not giving a token."""


class HttpClient:
    """For use from one thread, except ``abort``; ``stopping`` ends pauses early."""

    def __init__(self, settings: HttpSettings, stopping: threading.Event) -> None:
        self._settings, self._stopping = settings, stopping
        self._session = abortable_session(settings.tls)
        self._session.trust_env = False
        if settings.proxy is not None:
            self._session.proxies = {"http": settings.proxy, "https": settings.proxy}
        self._token: Password | None = None

    def abort(self) -> None:
        """May be called from any thread: makes the running request end with an error."""
        abort(self._session)

    def close(self) -> None:
        self._session.close()

    def send(self, request: HttpRequest) -> None:
        """Returns when the API has accepted the request (2xx).

        Raises Refused with the API's message, or RetriableConnectError when the task is stopping.
        """
        retries, said = self._settings.retries, ""
        for attempt in range(retries.most + 1):
            if attempt and self._stopping.wait(retries.pause_before(attempt)):
                raise RetriableConnectError(f"stopped before {request.url} was asked again: the API {said}")
            try:
                answer = self._answer(request)
            except requests.RequestException as error:
                said, again = f"cannot be reached: {_reason(error)}", True
            except _NoToken as error:
                said, again = f"cannot be asked: {error}", True
            else:
                if answer.status_code < _NOT_TAKEN:
                    return
                said, again = (
                    f"answered {answer.status_code}: {answer.text[:_SHOWN]}",
                    retries.again(answer.status_code),
                )
            if not again:
                break
            logger.info("request not taken", url=request.url, attempt=attempt + 1, said=said)
        raise Refused(f"{request.method} {request.url}: the API {said}")

    def _answer(self, request: HttpRequest) -> requests.Response:
        """The API's response. On 401 the token may have expired, so the request is repeated once with a new one."""
        answer = self._ask(request)
        if answer.status_code == _UNAUTHORIZED and self._settings.oauth is not None:
            self._token = None
            answer = self._ask(request)
        return answer

    def _ask(self, request: HttpRequest) -> requests.Response:
        settings = self._settings
        headers = dict(settings.headers if request.headers is None else request.headers)
        if settings.oauth is not None:
            headers["Authorization"] = f"Bearer {self._bearer(settings.oauth)}"
        return self._session.request(
            request.method,
            request.url,
            data=request.body,
            params=dict(settings.parameters),
            headers=headers,
            auth=settings.user,
            timeout=(settings.connect_timeout_s, settings.timeout_s),
            allow_redirects=False,
        )

    def _bearer(self, oauth: OAuth) -> str:
        if self._token is None:
            form = dict(oauth.parameters)
            if not oauth.in_header:
                form |= {oauth.id_name: oauth.client_id, oauth.secret_name: oauth.secret}
            answer = self._session.post(
                oauth.url,
                data=form,
                auth=(oauth.client_id, oauth.secret) if oauth.in_header else None,
                timeout=(self._settings.connect_timeout_s, self._settings.timeout_s),
            )
            if self._settings.retries.again(answer.status_code):
                raise _NoToken(f"{oauth.url} gave no {oauth.token_name}: it answered {_outline(answer)}")
            try:
                self._token = Password(str(answer.json()[oauth.token_name]))
            except (ValueError, KeyError, TypeError) as error:
                raise ConnectError(f"{oauth.url} gave no {oauth.token_name}: it answered {_outline(answer)}") from error
        return self._token.reveal()


def _outline(answer: requests.Response) -> str:
    """A description of a response that may contain a token, without its values.

    Error codes and descriptions defined by RFC 6749, 5.2 are included.
    """
    try:
        said = answer.json()
    except ValueError:
        return f"{answer.status_code} and no JSON"
    if not isinstance(said, dict):
        return f"{answer.status_code} and JSON that is no object"
    if isinstance(said.get("error"), str):
        words = [said["error"], said.get("error_description")]
        return f"{answer.status_code}: {': '.join(word for word in words if isinstance(word, str))}"
    return f"{answer.status_code} with {', '.join(map(str, said)) or 'nothing'}"


def _reason(error: requests.RequestException) -> str:
    """The innermost error message, without memory addresses."""
    inner: BaseException = error
    while inner.__context__ is not None:
        inner = inner.__context__
    return str(inner) or type(error).__name__

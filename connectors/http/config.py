"""Keys of the HTTP sink: Confluent's."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from urllib.parse import quote, urlsplit

from connect.api import (
    ConfigError,
    ConnectError,
    JavaRegex,
    KeyType,
    Password,
    Problem,
    at_least,
    between,
    config,
    family,
    key,
    one_of,
    parse,
)
from connectors.http.settings import HttpSettings, OAuth, Retries, status_codes
from tidegate.kit.keystores import secret_file
from tidegate.kit.tls import TlsKeys, client_context

__all__ = ["HttpAccess", "HttpSinkConfig", "http_url"]


def http_url(value: str) -> str | None:
    """An http or https address; parts of it may be placeholders."""
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    return None if good else "Must look like https://host/path"


def _codes(value: str) -> str | None:
    try:
        status_codes(value)
    except ValueError as error:
        return f"Must be codes and ranges of them, such as 429,500-599 or 400-, not {error}"
    return None


@config
class HttpAccess:
    """How requests authenticate, and how the server is verified with TLS."""

    auth: str = key(
        "auth.type",
        default="NONE",
        check=one_of("NONE", "BASIC", "OAUTH2", "BEARER", ignore_case=True),
        doc="How requests say who sends them.",
        importance="high",
        group="Authentication",
    )
    user: str = key(
        "connection.user", default="", doc="With BASIC, the user.", importance="high", group="Authentication"
    )
    password: Password = key(
        "connection.password", default="", doc="With BASIC, the password.", importance="high", group="Authentication"
    )
    bearer: Password = key(
        "bearer.token", default="", doc="With BEARER, the token.", importance="high", group="Authentication"
    )
    token_url: str | None = key(
        "oauth2.token.url",
        default=None,
        check=http_url,
        doc="With OAUTH2, where tokens are fetched.",
        importance="high",
        group="Authentication",
    )
    client_id: str = key(
        "oauth2.client.id", default="", doc="With OAUTH2, the client's id.", importance="high", group="Authentication"
    )
    client_secret: Password = key(
        "oauth2.client.secret", default="", doc="With OAUTH2, its secret.", importance="high", group="Authentication"
    )
    scope: str = key(
        "oauth2.client.scope", default="any", doc="With OAUTH2, the scope asked for.", group="Authentication"
    )
    token_property: str = key(
        "oauth2.token.property",
        default="access_token",
        doc="With OAUTH2, where the token is in the answer.",
        group="Authentication",
    )
    client_auth: str = key(
        "oauth2.client.auth.mode",
        default="header",
        check=one_of("header", "url", ignore_case=True),
        doc="With OAUTH2, whether id and secret are sent as basic authentication or in the form.",
        group="Authentication",
    )
    https: dict[str, str] = family(
        "https.",
        doc="TLS of https addresses: ssl.truststore.location and others of Kafka's ssl.* keys; host.verifier.enabled.",
    )

    @property
    def tls(self) -> ssl.SSLContext | None:
        """None: use Python's default certificate authorities.

        Raises ConfigError that names the key, without ``https.``.
        """
        verifies = self.https.get("host.verifier.enabled", "true").lower() != "false"
        ssl_keys = {name: value for name, value in self.https.items() if name.startswith("ssl.")}
        if ssl_keys.pop("ssl.enabled", "true").lower() == "false":
            ssl_keys = {}
        if not ssl_keys and verifies:
            return None
        with ExitStack() as files:
            for name in ("ssl.truststore", "ssl.keystore"):
                content = ssl_keys.pop(f"{name}file", None)
                if content:
                    ssl_keys[f"{name}.location"] = str(
                        files.enter_context(secret_file(_stored(f"{name}file", content)))
                    )
            return client_context(parse(TlsKeys, ssl_keys), check_host=verifies)

    def access_problems(self) -> Iterable[Problem]:
        """Problems with these keys."""
        kind = self.auth.upper()
        if kind == "OAUTH2" and not (self.token_url and self.client_id):
            yield Problem(
                "oauth2.token.url", "auth.type=OAUTH2 needs oauth2.token.url, oauth2.client.id and oauth2.client.secret"
            )
        if kind == "BASIC" and not self.user:
            yield Problem("connection.user", "auth.type=BASIC needs connection.user and connection.password")
        if kind == "BEARER" and not self.bearer:
            yield Problem("bearer.token", "auth.type=BEARER needs bearer.token")
        try:
            _ = self.tls
        except ConfigError as error:
            yield from (Problem(f"https.{problem.key}", problem.message) for problem in error.problems)


def _stored(name: str, content: str) -> bytes:
    """The bytes of a ``data:`` URL, which is how Confluent Cloud puts key stores into configurations."""
    head, marked, data = content.partition(";base64,")
    try:
        if not head.startswith("data:") or not marked:
            raise ValueError("it should be data:text/plain;base64,...")
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise ConfigError([Problem(name, f"Invalid value for configuration https.{name}: {error}")]) from error


@config
class HttpSinkConfig(HttpAccess):
    """Where records are sent, in which form, and what happens to those that the API rejects."""

    url: str = key(
        "http.api.url",
        check=http_url,
        doc="The address, in which ${topic}, ${key}, ${key.field} and ${field} (of the value) are filled in.",
        importance="high",
        group="Connection",
    )
    method: str = key(
        "request.method",
        default="POST",
        check=one_of("POST", "PUT", "PATCH", "DELETE", ignore_case=True),
        doc="The request's method.",
        importance="high",
        group="Connection",
    )
    header_text: str = key(
        "headers",
        default="",
        doc="Headers of each request, name:value, with header.separator between them.",
        importance="high",
        group="Connection",
    )
    header_separator: str = key(
        "header.separator", default="|", doc="What stands between headers.", importance="high", group="Connection"
    )
    body_format: str = key(
        "request.body.format",
        default="string",
        check=one_of("string", "json", ignore_case=True),
        doc="Values as text, or as JSON.",
        importance="high",
        group="Connection",
    )
    on_null: str = key(
        "behavior.on.null.values",
        default="ignore",
        check=one_of("ignore", "log", "delete", "fail", ignore_case=True),
        doc="A record without value: passed over, a DELETE of its key, or an error.",
        importance="low",
        group="Connection",
    )
    on_error: str = key(
        "behavior.on.error",
        default="fail",
        check=one_of("fail", "ignore", "log", ignore_case=True),
        doc="Records that the API does not take: given to errors.* (the task fails where they are not tolerated), or logged only.",
        importance="low",
        group="Connection",
    )
    batch_max: int = key(
        "batch.max.size",
        default=1,
        type=KeyType.INT,
        check=at_least(1),
        doc="The most records in one request.",
        importance="high",
        group="Batching",
    )
    batch_key: str = key(
        "batch.key.pattern",
        default="${key},${topic}",
        doc="Records share a request only where this, filled in as the address is, is the same.",
        importance="high",
        group="Batching",
    )
    batch_prefix: str = key(
        "batch.prefix", default="", doc="What a body begins with.", importance="high", group="Batching"
    )
    batch_suffix: str = key(
        "batch.suffix", default="", doc="What a body ends with.", importance="high", group="Batching"
    )
    batch_separator: str = key(
        "batch.separator", default=",", doc="What stands between records.", importance="high", group="Batching"
    )
    json_array: bool = key(
        "batch.json.as.array",
        default=False,
        doc="With request.body.format=json, whether a body is an array of its records.",
        importance="high",
        group="Batching",
    )
    patterns: str = key(
        "regex.patterns",
        default="",
        doc="Regular expressions; what they find in a text is replaced. Not with JSON.",
        group="Regex",
    )
    replacements: str = key("regex.replacements", default="", doc="What it is replaced by.", group="Regex")
    regex_separator: str = key(
        "regex.separator", default="~", doc="What stands between expressions, and between replacements.", group="Regex"
    )
    max_retries: int = key(
        "max.retries",
        default=10,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often a request is sent again.",
        group="Retries",
    )
    backoff_ms: int = key(
        "retry.backoff.ms",
        default=3000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The pause before that, in milliseconds.",
        group="Retries",
    )
    backoff_policy: str = key(
        "retry.backoff.policy",
        default="EXPONENTIAL_WITH_JITTER",
        check=one_of("CONSTANT_VALUE", "EXPONENTIAL_WITH_JITTER", ignore_case=True),
        doc="Whether that pause is always the same or about twice as long each time.",
        group="Retries",
    )
    retry_codes: str = key(
        "retry.on.status.codes",
        default="400-",
        check=_codes,
        doc="Answers that a request is sent again for, such as 429,500-599; no answer is always one.",
        group="Retries",
    )
    connect_timeout_ms: int = key(
        "http.connect.timeout.ms",
        default=30_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a connection may take, in milliseconds.",
        group="Retries",
    )
    timeout_ms: int = key(
        "http.request.timeout.ms",
        default=30_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long an answer may take, in milliseconds.",
        group="Retries",
    )
    proxy_host: str = key("http.proxy.host", default="", doc="The host of a proxy.", group="Proxy")
    proxy_port: int = key(
        "http.proxy.port", default=0, type=KeyType.INT, check=between(0, 65535), doc="Its port.", group="Proxy"
    )
    proxy_user: str = key("http.proxy.user", default="", doc="Its user.", group="Proxy")
    proxy_password: Password = key("http.proxy.password", default="", doc="That user's password.", group="Proxy")

    def settings_of(self, topic: str) -> HttpSettings:
        """Settings for a topic's records; the same API for all topics."""
        return self.settings

    @cached_property
    def settings(self) -> HttpSettings:
        """Raises ConfigError where the TLS keys are invalid."""
        json, array = self.body_format.lower() == "json", self.json_array
        kind = self.auth.upper()
        headers = list(_pairs(self.header_text, self.header_separator))
        names = {name.lower() for name, _ in headers}
        if "content-type" not in names:
            headers.append(("Content-Type", "application/json" if json else "text/plain; charset=utf-8"))
        if kind == "BEARER":
            headers.append(("Authorization", f"Bearer {self.bearer.reveal()}"))
        return HttpSettings(
            url=self.url,
            method=self.method.upper(),
            headers=headers,
            records=self.batch_max,
            prefix=self.batch_prefix + ("[" if json and array else ""),
            suffix=("]" if json and array else "") + self.batch_suffix,
            separator="," if json and array else self.batch_separator,
            json=json,
            group_by=self.batch_key,
            replacements=[] if json else self._replacements,
            nulls=self.on_null.lower(),
            skips_errors=self.on_error.lower() != "fail",
            retries=Retries(
                self.max_retries,
                self.backoff_ms / 1000,
                status_codes(self.retry_codes),
                doubles=self.backoff_policy.upper() != "CONSTANT_VALUE",
            ),
            connect_timeout_s=self.connect_timeout_ms / 1000,
            timeout_s=self.timeout_ms / 1000,
            user=(self.user, self.password.reveal()) if kind == "BASIC" else None,
            oauth=self._oauth if kind == "OAUTH2" else None,
            tls=self.tls,
            proxy=self._proxy,
        )

    @property
    def _oauth(self) -> OAuth:
        return OAuth(
            self.token_url or "",
            {"grant_type": "client_credentials", "scope": self.scope},
            self.client_id,
            self.client_secret.reveal(),
            in_header=self.client_auth.lower() == "header",
            token_name=self.token_property,
        )

    @property
    def _proxy(self) -> str | None:
        if not self.proxy_host:
            return None
        user = (
            f"{quote(self.proxy_user, safe='')}:{quote(self.proxy_password.reveal(), safe='')}@"
            if self.proxy_user
            else ""
        )
        return f"http://{user}{self.proxy_host}:{self.proxy_port}"

    @property
    def _replacements(self) -> list[tuple[str, str]]:
        if not self.patterns:
            return []
        replacements = self.patterns.split(self.regex_separator)
        return list(zip(replacements, self.replacements.split(self.regex_separator), strict=True))

    def problems(self) -> Iterable[Problem]:
        yield from self.access_problems()
        try:
            list(_pairs(self.header_text, self.header_separator))
        except ConnectError as error:
            yield Problem("headers", str(error))
        try:
            for pattern, replacement in self._replacements:
                JavaRegex(pattern).check_replacement(replacement)
        except ValueError as error:
            yield Problem(
                "regex.patterns",
                f"as many regex.replacements as regex.patterns, which should be regular expressions: {error}",
            )


def _pairs(text: str, separator: str) -> Iterable[tuple[str, str]]:
    for part in filter(None, (part.strip() for part in text.split(separator or "|"))):
        name, colon, value = part.partition(":")
        if not name.strip() or not colon or not name.strip().isascii():
            raise ConnectError(f"{part!r} should be name:value")
        yield name.strip(), value.strip()

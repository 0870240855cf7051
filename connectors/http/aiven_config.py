"""Keys of Aiven's HTTP sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from connect.api import ConfigError, KeyType, Password, Problem, at_least, between, config, key, one_of
from connectors.http.config import http_url
from connectors.http.settings import HttpSettings, OAuth, Retries
from tidegate.kit.tls import TlsKeys, client_context

__all__ = ["AivenHttpSinkConfig"]


@config
class AivenHttpSinkConfig:
    """Where records are sent, in which form, and how requests authenticate."""

    url: str = key("http.url", check=http_url, doc="The address.", importance="high", group="Connection")
    auth: str = key(
        "http.authorization.type",
        check=one_of("none", "static", "oauth2", ignore_case=True),
        doc="How requests say who sends them: not at all, by http.headers.authorization, or by a token.",
        importance="high",
        group="Connection",
    )
    authorization: Password | None = key(
        "http.headers.authorization", default=None, doc="With static, the header Authorization.", group="Connection"
    )
    content_type: str | None = key(
        "http.headers.content.type", default=None, doc="The header Content-Type.", importance="low", group="Connection"
    )
    more_headers: list[str] = key(
        "http.headers.additional",
        default=[],
        doc="Further headers, as name:value.",
        importance="low",
        group="Connection",
    )
    trusts_all: bool = key(
        "http.ssl.trust.all.certs",
        default=False,
        doc="Not supported: name a trust store.",
        importance="low",
        group="Connection",
    )
    truststore: str | None = key(
        "http.ssl.truststore.location", default=None, doc="The certificates that are trusted.", group="Connection"
    )
    truststore_password: Password | None = key(
        "http.ssl.truststore.password", default=None, doc="The trust store's password.", group="Connection"
    )
    token_url: str | None = key(
        "oauth2.access.token.url", default=None, check=http_url, doc="Where tokens are fetched.", group="OAuth2"
    )
    grant_property: str = key(
        "oauth2.request.grant.type.property",
        default="grant_type",
        doc="The parameter of the grant's type.",
        group="OAuth2",
    )
    grant: str = key("oauth2.grant.type", default="client_credentials", doc="The grant's type.", group="OAuth2")
    id_property: str = key(
        "oauth2.request.client.id.property",
        default="client_id",
        doc="The parameter of the client's id.",
        group="OAuth2",
    )
    client_id: str | None = key("oauth2.client.id", default=None, doc="The client's id.", group="OAuth2")
    secret_property: str = key(
        "oauth2.request.client.secret.property",
        default="client_secret",
        doc="The parameter of its secret.",
        group="OAuth2",
    )
    client_secret: Password | None = key("oauth2.client.secret", default=None, doc="Its secret.", group="OAuth2")
    client_auth: str = key(
        "oauth2.client.authorization.mode",
        default="HEADER",
        check=one_of("HEADER", "URL", ignore_case=True),
        doc="Whether id and secret are sent as basic authentication or in the form.",
        group="OAuth2",
    )
    scope: str | None = key("oauth2.client.scope", default=None, doc="The scope asked for.", group="OAuth2")
    token_property: str = key(
        "oauth2.response.token.property",
        default="access_token",
        doc="Where the token is in the answer.",
        group="OAuth2",
    )
    batching: bool = key(
        "batching.enabled", default=False, doc="Whether records share requests.", importance="high", group="Batching"
    )
    batch_max: int = key(
        "batch.max.size",
        default=500,
        type=KeyType.INT,
        check=between(1, 1_000_000),
        doc="The most records in one request.",
        group="Batching",
    )
    batch_prefix: str = key(
        "batch.prefix",
        default="",
        keep_blanks=True,
        doc="What a body begins with; blanks and newlines count.",
        importance="high",
        group="Batching",
    )
    batch_suffix: str = key(
        "batch.suffix",
        default="\n",
        keep_blanks=True,
        doc="What a body ends with; blanks and newlines count.",
        importance="high",
        group="Batching",
    )
    batch_separator: str = key(
        "batch.separator",
        default="\n",
        keep_blanks=True,
        doc="What stands between records; blanks and newlines count.",
        importance="high",
        group="Batching",
    )
    max_retries: int = key(
        "max.retries",
        default=1,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often a request is sent again.",
        group="Errors",
    )
    backoff_ms: int = key(
        "retry.backoff.ms",
        default=3000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The pause before that, in milliseconds.",
        group="Errors",
    )
    kafka_backoff_ms: int | None = key(
        "kafka.retry.backoff.ms",
        default=None,
        check=between(0, 86_400_000),
        doc="Accepted for compatibility: what fails for the moment is tried again after the worker's own pauses.",
        group="Errors",
    )
    timeout_s: int = key(
        "http.timeout",
        default=30,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long an answer may take, in seconds.",
        group="Errors",
    )

    def settings_of(self, topic: str) -> HttpSettings:
        """Settings for a topic's records; the same API for all topics."""
        return self.settings

    @cached_property
    def settings(self) -> HttpSettings:
        """Raises ConfigError where the trust store is unusable."""
        kind = self.auth.lower()
        headers = [
            (name.strip(), value.strip()) for name, _, value in (text.partition(":") for text in self.more_headers)
        ]
        if self.content_type is not None:
            headers.append(("Content-Type", self.content_type))
        if kind == "static" and self.authorization is not None:
            headers.append(("Authorization", self.authorization.reveal()))
        return HttpSettings(
            url=self.url.replace("${", "$%7B"),  # this connector has no placeholders
            headers=headers,
            records=self.batch_max if self.batching else 1,
            prefix=self.batch_prefix if self.batching else "",
            suffix=self.batch_suffix if self.batching else "",
            separator=self.batch_separator,
            json=False,
            structs_as_json=True,
            retries=Retries(self.max_retries, self.backoff_ms / 1000, [range(400, 1000)]),
            connect_timeout_s=self.timeout_s,
            timeout_s=self.timeout_s,
            oauth=self._oauth if kind == "oauth2" else None,
            tls=client_context(_store(self.truststore, self.truststore_password)) if self.truststore else None,
        )

    @property
    def _oauth(self) -> OAuth:
        parameters: Mapping[str, str] = {self.grant_property: self.grant}
        if self.scope is not None:
            parameters = {**parameters, "scope": self.scope}
        return OAuth(
            self.token_url or "",
            parameters,
            self.client_id or "",
            self.client_secret.reveal() if self.client_secret is not None else "",
            in_header=self.client_auth.upper() == "HEADER",
            id_name=self.id_property,
            secret_name=self.secret_property,
            token_name=self.token_property,
        )

    def problems(self) -> Iterable[Problem]:
        kind = self.auth.lower()
        if kind == "static" and self.authorization is None:
            yield Problem(
                "http.headers.authorization", "http.authorization.type=static needs http.headers.authorization"
            )
        if kind == "oauth2" and not (self.token_url and self.client_id and self.client_secret):
            yield Problem(
                "oauth2.access.token.url",
                "http.authorization.type=oauth2 needs oauth2.access.token.url, oauth2.client.id and oauth2.client.secret",
            )
        if self.trusts_all:
            yield Problem(
                "http.ssl.trust.all.certs",
                "a server that nobody vouches for is not supported: name http.ssl.truststore.location",
            )
        for text in self.more_headers:
            if not text.partition(":")[0].strip() or ":" not in text:
                yield Problem("http.headers.additional", f"{text!r} should be name:value")
        if self.truststore:
            try:
                client_context(_store(self.truststore, self.truststore_password))
            except ConfigError as error:
                yield from (Problem(f"http.{problem.key}", problem.message) for problem in error.problems)


def _store(location: str, password: Password | None) -> TlsKeys:
    return TlsKeys(ssl_truststore_location=location, ssl_truststore_password=password)

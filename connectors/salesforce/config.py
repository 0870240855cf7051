"""Keys of the Salesforce connectors, under the names of Confluent's."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from connect.api import (
    Dataset,
    Password,
    Problem,
    at_least,
    between,
    config,
    family,
    key,
    non_empty,
    one_of,
    valid_regex,
)

__all__ = ["EventSinkConfig", "ObjectSinkConfig", "SalesforceConfig", "WriteConfig"]

_GRANTS = ("PASSWORD", "CLIENT_CREDENTIALS", "JWT_BEARER")


def _is_data_uri(text: Password) -> str | None:
    text_ = text.reveal()
    return (
        None if not text_ or (text_.startswith("data:") and ";base64," in text_) else "must be data:text/plain;base64,…"
    )


@config
class SalesforceConfig:
    """How to connect and log in to an org."""

    instance: str = key(
        "salesforce.instance",
        default="https://login.salesforce.com",
        doc="Where to log in: Salesforce's login host, a My Domain URL, or the TLS address of a Tidegate events service.",
        importance="high",
        check=lambda url: None if url.startswith("https://") else "must be an https:// URL",
        group="Salesforce",
    )
    username: str = key("salesforce.username", default="", doc="The user.", importance="high", group="Salesforce")
    password: Password = key(
        "salesforce.password", default="", doc="The user's password.", importance="high", group="Salesforce"
    )
    security_token: Password = key(
        "salesforce.password.token", default="", doc="The user's security token.", importance="high", group="Salesforce"
    )
    consumer_key: str = key(
        "salesforce.consumer.key",
        default="",
        doc="The connected app's consumer key.",
        importance="high",
        group="Salesforce",
    )
    consumer_secret: Password = key(
        "salesforce.consumer.secret",
        default="",
        doc="The connected app's secret.",
        importance="high",
        group="Salesforce",
    )
    grant_type: str = key(
        "salesforce.grant.type",
        default="PASSWORD",
        check=one_of(*_GRANTS, ignore_case=True),
        doc="How to log in. Without a consumer key, PASSWORD logs in over SOAP.",
        group="Salesforce",
    )
    jwt_private_key: str | None = key(
        "salesforce.jwt.privatekey.path",
        default=None,
        doc="The PEM file of the private key that signs the JWT.",
        group="Salesforce",
    )
    jwt_keystore: str | None = key(
        "salesforce.jwt.keystore.path",
        default=None,
        doc="Instead of the PEM file, the JKS or PKCS12 key store with the private key that signs the JWT.",
        group="Salesforce",
    )
    jwt_keystore_content: Password = key(
        "salesforce.jwt.keystore.file",
        default="",
        doc="Instead of a file, the content of the key store: data:text/plain;base64,…",
        check=_is_data_uri,
        group="Salesforce",
    )
    jwt_keystore_password: Password = key(
        "salesforce.jwt.keystore.password", default="", doc="The key store's password.", group="Salesforce"
    )
    version: str = key(
        "salesforce.version",
        default="latest",
        check=lambda text: None if text == "latest" or valid_version(text) else "must be latest or a version like 60.0",
        doc="The API version; latest is the newest this connector was tried with.",
        group="Salesforce",
    )
    connection_timeout_ms: int = key(
        "connection.timeout", default=30_000, check=between(5_000, 600_000), doc="Milliseconds to wait for an answer.",
        group="Salesforce",
    )  # fmt: skip
    max_retry_ms: int = key(
        "request.max.retries.time.ms",
        default=30_000,
        check=at_least(0),
        doc="For how long a request that Salesforce could not take just now is repeated.",
        group="Salesforce",
    )
    http_proxy: str | None = key("http.proxy", default=None, doc="HOST:PORT of an HTTP proxy.", group="Salesforce")
    proxy_scheme: str = key(
        "http.proxy.auth.scheme",
        default="NONE",
        check=one_of("NONE", "BASIC"),
        doc="How to log in at the proxy.",
        group="Salesforce",
    )
    proxy_user: str = key("http.proxy.user", default="", doc="The proxy's user.", group="Salesforce")
    proxy_password: Password = key("http.proxy.password", default="", doc="That user's password.", group="Salesforce")
    ca_file: str | None = key(
        "salesforce.ca.file",
        default=None,
        doc="A PEM file of authorities to trust instead of the machine's.",
        group="Salesforce",
    )
    licence: dict[str, str] = family("confluent.", doc="Licence keys of the original: accepted, not used.")

    @property
    def api_version(self) -> str:
        return "60.0" if self.version == "latest" else self.version.removeprefix("v")

    def dataset(self, name: str) -> Dataset:
        """An object or event of the org."""
        return Dataset(f"salesforce://{urlsplit(self.instance).netloc}", name)

    def problems(self) -> Iterable[Problem]:
        needed = {"username": self.username, "password": self.password.reveal()}
        if self.grant_type.upper() == "CLIENT_CREDENTIALS":
            needed = {"consumer.key": self.consumer_key, "consumer.secret": self.consumer_secret.reveal()}
        elif self.grant_type.upper() == "JWT_BEARER":
            key_place = self.jwt_private_key or self.jwt_keystore or self.jwt_keystore_content.reveal()
            needed = {
                "username": self.username,
                "consumer.key": self.consumer_key,
                "jwt.keystore.path": key_place,
            }
        for name, value in needed.items():
            if not value:
                yield Problem(f"salesforce.{name}", f"salesforce.grant.type {self.grant_type} needs salesforce.{name}")


def valid_version(text: str) -> bool:
    major, dot, minor = text.removeprefix("v").partition(".")
    return major.isdigit() and (not dot or minor.isdigit())


@config
class WriteConfig(SalesforceConfig):
    """Which object a sink writes, and how."""

    object_name: str = key(
        "salesforce.object",
        aliases=("salesforce.object1",),
        doc="The object to write, such as Account.",
        importance="high",
        check=non_empty,
        group="Object",
    )
    operation: str = key(
        "salesforce.sink.object.operation",
        default="insert",
        aliases=("salesforce.object1.sink.object.operation",),
        check=one_of("insert", "update", "upsert", "delete"),
        doc="What to do with a record that does not say it itself in _EventType.",
        importance="high",
        group="Object",
    )
    override_event_type: bool = key(
        "override.event.type",
        default=False,
        aliases=("salesforce.object.override.event.type", "salesforce.object1.override.event.type"),
        doc="Do salesforce.sink.object.operation even where a record says otherwise in _EventType.",
        group="Object",
    )
    use_custom_id: bool = key(
        "salesforce.use.custom.id.field",
        default=False,
        aliases=("salesforce.object1.use.custom.id.field",),
        doc="Find objects by an external id field.",
        group="Object",
    )
    custom_id: str = key(
        "salesforce.custom.id.field.name",
        default="",
        aliases=("salesforce.object1.custom.id.field.name",),
        doc="The external id field.",
        group="Object",
    )
    ignore_fields: list[str] = key(
        "salesforce.ignore.fields",
        default=[],
        aliases=("salesforce.object1.ignore.fields",),
        doc="Fields of the records that are not written.",
        group="Object",
    )
    ignore_references: bool = key(
        "salesforce.ignore.reference.fields",
        default=False,
        aliases=("salesforce.object1.ignore.reference.fields",),
        doc="Do not write fields that refer to other records.",
        group="Object",
    )
    ignore_pattern: str = key(
        "salesforce.ignore.fields.regex",
        default=r"_.*|attributes|SystemModstamp|CreatedDate|CreatedById|LastModified.*|IsDeleted|ReplayId|ChangeEventHeader",
        check=valid_regex,
        doc="Fields whose whole name matches are not written either: what a source adds and what Salesforce sets itself.",
        importance="low",
        group="Object",
    )

    def problems(self) -> Iterable[Problem]:
        yield from SalesforceConfig.problems(self)
        if self.use_custom_id and not self.custom_id:
            yield Problem(
                "salesforce.custom.id.field.name",
                "salesforce.use.custom.id.field needs salesforce.custom.id.field.name",
            )
        if self.operation == "upsert" and not self.use_custom_id:
            yield Problem(
                "salesforce.sink.object.operation",
                "upsert needs salesforce.use.custom.id.field=true and the field's name",
            )


@config
class ObjectSinkConfig(WriteConfig):
    """SObject sink."""

    batch_size: int = key(
        "salesforce.batch.size",
        default=200,
        check=between(1, 200),
        doc="Records in one request; Salesforce takes 200 at most.",
        group="Object",
    )


@config
class EventSinkConfig(SalesforceConfig):
    """Platform event sink."""

    event: str = key(
        "salesforce.platform.event.name",
        doc="The platform event to publish.",
        importance="high",
        check=lambda name: None if name.endswith("__e") else "must be the name of a platform event, which ends in __e",
        group="Event",
    )
    batch_size: int = key(
        "salesforce.batch.size", default=200, check=between(1, 200), doc="Events in one request.", group="Event"
    )

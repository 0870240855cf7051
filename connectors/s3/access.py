"""Keys for the bucket and the connection to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from connect.api import KeyType, Password, Problem, config, family, key, keys_of, non_empty
from connectors.objects.config import request_retries_key
from connectors.objects.proxies import proxy_password_key, proxy_problems, proxy_url_key, proxy_user_key

__all__ = ["S3AccessConfig", "access_problems", "role_options", "role_problems"]

_CHAIN: Final = "DefaultAWSCredentialsProviderChain"
_ROLE: Final = "AwsAssumeRoleCredentialsProvider"
_PROVIDER: Final = "s3.credentials.provider."
_ANONYMOUS: Final = "AnonymousCredentialsProvider"
_IN_CHAIN: Final = frozenset(
    {
        _CHAIN,
        "DefaultCredentialsProvider",
        "EnvironmentVariableCredentialsProvider",
        "ProfileCredentialsProvider",
        "InstanceProfileCredentialsProvider",
        "ContainerCredentialsProvider",
        "EC2ContainerCredentialsProviderWrapper",
        "WebIdentityTokenCredentialsProvider",
        "WebIdentityTokenFileCredentialsProvider",
    }
)
"""Amazon's own providers: the client checks all their sources itself."""


@config
class S3AccessConfig:
    """Confluent's keys that source and sink share."""

    bucket: str = key(
        "s3.bucket.name", doc="The bucket. It must be there.", importance="high", check=non_empty, group="S3"
    )
    region: str = key("s3.region", default="us-west-2", doc="The bucket's region.", group="S3")
    url: str | None = key(
        "store.url",
        default=None,
        doc="Address of a server other than Amazon's, such as http://127.0.0.1:9000.",
        importance="high",
        group="S3",
    )
    access_key: str = key(
        "aws.access.key.id",
        default="",
        doc="Access key. Unless given, it comes from where Amazon's clients look: environment, profile, instance role.",
        importance="high",
        group="S3",
    )
    secret_key: Password = key(
        "aws.secret.access.key", default="", doc="Secret of the access key.", importance="high", group="S3"
    )
    path_style: bool = key(
        "s3.path.style.access.enabled",
        default=True,
        doc="Whether a server at store.url is asked by path (host/bucket) rather than by name (bucket.host).",
        importance="low",
        group="S3",
    )
    retries: int = request_retries_key("s3.part.retries", "S3")
    provider_class: str = key(
        "s3.credentials.provider.class",
        default=f"com.amazonaws.auth.{_CHAIN}",
        type=KeyType.CLASS,
        doc="Where credentials come from without aws.access.key.id: Amazon's default chain or a provider of it (environment, "
        f"profile, container, instance role), {_ROLE}, or {_ANONYMOUS}.",
        importance="low",
        group="S3",
    )
    role_arn: str = key(
        "s3.credentials.provider.sts.role.arn", default="", doc=f"With {_ROLE}, the role.", importance="low", group="S3"
    )
    role_session: str = key(
        "s3.credentials.provider.sts.role.session.name",
        default="",
        doc=f"With {_ROLE}, the session's name.",
        importance="low",
        group="S3",
    )
    role_external_id: str = key(
        "s3.credentials.provider.sts.role.external.id",
        default="",
        doc=f"With {_ROLE}, the id that a role in another account may ask for.",
        importance="low",
        group="S3",
    )
    provider_keys: dict[str, str] = family(
        _PROVIDER,
        doc="Further keys of a class of one's own, which are refused: they would say whose credentials are used.",
    )
    proxy_url: str = proxy_url_key("s3.proxy.url", "S3")
    proxy_user: str = proxy_user_key("s3.proxy.user", "S3")
    proxy_password: Password = proxy_password_key("s3.proxy.password", "S3")

    @property
    def provider(self) -> str:
        """The provider's class name without the package."""
        return self.provider_class.rpartition(".")[2]

    @property
    def client_options(self) -> Mapping[str, Any]:
        """The arguments of pyarrow's client for credentials and a proxy."""
        options: dict[str, Any] = {}
        if self.provider == _ROLE:
            options |= role_options(self.role_arn, self.role_session, self.role_external_id)
        elif self.provider == _ANONYMOUS and not self.access_key:
            options["anonymous"] = True
        if self.proxy_url:
            parts = urlsplit(self.proxy_url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            proxy: dict[str, Any] = {"scheme": parts.scheme, "host": parts.hostname, "port": port}
            user = self.proxy_user or unquote(parts.username or "")
            if user:
                password = self.proxy_password.reveal() or unquote(parts.password or "")
                proxy |= {"username": user, "password": password}
            options["proxy_options"] = proxy
        return options

    def access_problems(self) -> Iterable[Problem]:
        """Problems with any of these keys."""
        yield from access_problems(self.url, "store.url", self.access_key, self.secret_key)
        name = "s3.credentials.provider.class"
        if self.provider not in _IN_CHAIN | {_ROLE, _ANONYMOUS}:
            yield Problem(
                name,
                f"{name} is {self.provider_class}: a class of one's own cannot be loaded here. Take Amazon's default chain, "
                f"{_ROLE}, or give aws.access.key.id and aws.secret.access.key",
            )
        known = {declared.name for declared in keys_of(S3AccessConfig)}
        for provider_key in sorted(f"{_PROVIDER}{part}" for part in self.provider_keys):
            if provider_key not in known:
                yield Problem(
                    provider_key,
                    f"{provider_key} is not a key of Amazon's providers: let the keys that assume a role come from the environment, a "
                    "profile or the instance, and leave it out",
                )
        if self.provider == _ROLE and not self.role_arn:
            yield Problem("s3.credentials.provider.sts.role.arn", f"{_ROLE} needs s3.credentials.provider.sts.role.arn")
        if self.provider == _ROLE:
            yield from role_problems(_ROLE, self.access_key)
        yield from proxy_problems(self.proxy_url, "s3.proxy.url")


def role_options(arn: str, session: str, external_id: str) -> dict[str, Any]:
    """The arguments of pyarrow's client for assuming a role."""
    options = {"role_arn": arn, "session_name": session, "external_id": external_id}
    return {name: value for name, value in options.items() if value}


def role_problems(asked_by: str, access_key: str) -> Iterable[Problem]:
    """Problems with a role that ``asked_by`` requests: it cannot be combined with access keys, because pyarrow's client
    accepts one of them.
    """
    if access_key:
        yield Problem(
            "aws.access.key.id",
            f"with {asked_by} the keys that assume the role come from the environment, a profile or the instance: leave "
            "aws.access.key.id and aws.secret.access.key out",
        )


def access_problems(url: str | None, url_key: str, access_key: str, secret_key: Password) -> Iterable[Problem]:
    """Problems with an address, or with only one of the two keys being set."""
    if url and urlsplit(url).scheme not in ("http", "https"):
        yield Problem(url_key, f"{url_key} is {url!r}; it should look like http://127.0.0.1:9000")
    if bool(access_key) != bool(secret_key.reveal()):
        yield Problem("aws.access.key.id", "give both of aws.access.key.id and aws.secret.access.key, or neither")

"""Settings that affect safety or the destination of data are applied, or refused with an explanation."""

from __future__ import annotations

from typing import Any

import pytest

from connect.plugins.registry import load_plugins
from connect.validation.unknown_keys import unknown_keys
from connect.validation.validation import validate_connector
from connectors.s3.access import S3AccessConfig
from connectors.s3.config import S3SinkConfig
from tidegate.kit.config import parse

PLUGINS = load_plugins()
S3 = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "t",
    "s3.bucket.name": "b",
    "flush.size": "1",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
}
HDFS = {
    "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
    "topics": "t",
    "hdfs.url": "hdfs://127.0.0.1:1",
    "flush.size": "1",
    "format.class": "io.confluent.connect.hdfs.json.JsonFormat",
}
AVRO = {**S3, "value.converter": "io.confluent.connect.avro.AvroConverter"}
APICURIO = {**S3, "value.converter": "io.apicurio.registry.utils.converter.AvroConverter"}
EXT_JSON = {
    **S3,
    "value.converter": "io.apicurio.registry.utils.converter.ExtJsonConverter",
    "value.converter.apicurio.registry.url": "http://127.0.0.1:1/apis/registry/v2",
}
ROLE = "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider"
REFUSED = [
    (S3, {"s3.ssea.name": "AES256"}, "default encryption"),
    (S3, {"s3.ssea.name": "aws:kms"}, "default encryption"),
    (S3, {"s3.sse.kms.key.id": "k"}, "default encryption"),
    (S3, {"s3.sse.customer.key": "k"}, "cannot be encrypted with a key"),
    (S3, {"s3.object.tagging": "true"}, "s3.object.tagging=false"),
    (S3, {"s3.wan.mode": "true"}, "s3.wan.mode=false"),
    (S3, {"s3.schema.partition.affix.type": "PREFIX"}, "set NONE"),
    (S3, {"s3.credentials.provider.class": "com.example.Provider"}, "s3.credentials.provider.class"),
    (S3, {"s3.credentials.provider.mine": "x"}, "s3.credentials.provider.mine"),
    (S3, {"behavior.on.null.values": "write"}, "needs store.kafka.keys=true"),
    (HDFS, {"connect.hdfs.principal": "connect@EXAMPLE.COM"}, "kinit"),
    (HDFS, {"connect.hdfs.keytab": "/etc/connect.keytab"}, "kinit"),
    (HDFS, {"hive.integration": "true"}, "MSCK REPAIR TABLE"),
    (APICURIO, {"value.converter.apicurio.registry.url": "http://127.0.0.1:1/apis/registry/v2"}, "/apis/ccompat/v7"),
    (APICURIO, {"value.converter.apicurio.registry.auto-register": "true"}, "auto.register.schemas"),
    (APICURIO, {"value.converter.apicurio.registry.headers.enabled": "true"}, "apicurio.registry.headers.enabled"),
    (EXT_JSON, {"value.converter.apicurio.registry.request.ssl.truststore.location": "/x"}, "apicurio"),
]


def judged(base: dict[str, str], change: dict[str, str]) -> tuple[dict[str, list[str]], set[str]]:
    """The errors by key, and the keys that nobody reads."""
    config = {"name": "x", **base, **change}
    infos = validate_connector(PLUGINS, config, check=False)
    return {name: entry.errors for name, entry in infos.entries.items() if entry.errors}, set(
        dict(unknown_keys(infos, config))
    )


@pytest.mark.parametrize(("base", "change", "words"), REFUSED, ids=[next(iter(change)) for _, change, _ in REFUSED])
def test_an_unsupported_value_is_refused_with_a_sentence(
    base: dict[str, str], change: dict[str, str], words: str
) -> None:
    wrong, unread = judged(base, change)
    assert wrong.keys() <= change.keys() and wrong, wrong
    assert words in " ".join(error for errors in wrong.values() for error in errors)
    assert unread == set()


@pytest.mark.parametrize(
    "change",
    [
        {"s3.ssea.name": ""},
        {"s3.object.tagging": "false"},
        {"s3.proxy.url": "http://proxy:3128", "s3.proxy.user": "u", "s3.proxy.password": "p"},
        {"s3.credentials.provider.class": "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"},
        {"s3.credentials.provider.class": ROLE, "s3.credentials.provider.sts.role.arn": "arn:aws:iam::1:role/r"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_supported_value_is_accepted(change: dict[str, str]) -> None:
    assert judged(S3, change) == ({}, set())


def options(**overrides: str) -> Any:
    config: S3AccessConfig = parse(
        S3SinkConfig, S3 | {name.replace("_", "."): value for name, value in overrides.items()}
    )
    return config.client_options


def test_a_proxy_and_credentials_reach_the_client_of_s3() -> None:
    proxy = options(s3_proxy_url="http://proxy:3128", s3_proxy_user="u", s3_proxy_password="p")["proxy_options"]
    assert proxy == {"scheme": "http", "host": "proxy", "port": 3128, "username": "u", "password": "p"}
    role = options(
        s3_credentials_provider_class=ROLE,
        s3_credentials_provider_sts_role_arn="arn:aws:iam::1:role/r",
        s3_credentials_provider_sts_role_external_id="e",
    )
    assert (role["role_arn"], role["external_id"]) == ("arn:aws:iam::1:role/r", "e")
    anonymous = "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider"
    assert options(s3_credentials_provider_class=anonymous) == {"anonymous": True}


def test_kerberos_without_a_login_of_its_own_is_taken() -> None:
    config = {"hdfs.authentication.kerberos": "true", "kerberos.ticket.renew.period.ms": "60000"}
    assert judged(HDFS, config | {"hdfs.namenode.principal": "nn/_HOST@EXAMPLE.COM"}) == ({}, set())


def test_where_schemas_are_kept_and_how_they_are_reached_is_taken() -> None:
    """tests/connect/converters/test_ext_json.py and tests/registry/client/test_reaching.py show that it is obeyed."""
    assert judged(EXT_JSON, {}) == ({}, set())
    names = [f"{store}.{key}" for store in ("truststore", "keystore") for key in ("location", "password", "type")]
    tls = {f"value.converter.schema.registry.ssl.{name}": "PEM" if "type" in name else "/x" for name in names}
    assert judged(AVRO, tls | {"value.converter.schema.registry.ssl.key.password": "x"}) == ({}, set())

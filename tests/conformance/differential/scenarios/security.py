"""Access control, credentials, tokens, quotas and client telemetry."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask

TOPIC, GROUP, CLUSTER = 2, 3, 4
LITERAL, PREFIXED = 3, 4
READ, WRITE, ALL = 3, 4, 2
DENY, ALLOW = 2, 3
ANY: Final = 1


def acl(name: str = "$u", **more: Any) -> dict[str, Any]:
    return {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:$u",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
        **more,
    }


def acl_filter(**more: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": "User:$u",
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **more,
    }


def created(*acls: dict[str, Any]) -> Step:
    return ask(ApiKey.CREATE_ACLS, {"creations": list(acls)}, once=True)


def deleted(*filters: dict[str, Any]) -> Step:
    return ask(ApiKey.DELETE_ACLS, {"filters": list(filters)}, once=True)


def acls(**more: Any) -> Step:
    return ask(ApiKey.DESCRIBE_ACLS, acl_filter(**more))


def upsert(
    name: str = "$u", mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt", password: bytes = b"p" * 32
) -> Step:
    request = {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": salt,
        "salted_password": password,
    }
    return ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": [], "upsertions": [request]}, once=True)


def quota(ops: list[dict[str, Any]], *entity: tuple[str, str | None], validate_only: bool = False) -> Step:
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
    return ask(
        ApiKey.ALTER_CLIENT_QUOTAS,
        {"entries": [{"entity": parts, "ops": ops}], "validate_only": validate_only},
        once=True,
    )


def rate(key: str, value: float, *, remove: bool = False) -> dict[str, Any]:
    return {"key": key, "value": value, "remove": remove}


def quotas(*components: tuple[str, int, str | None], strict: bool = False) -> Step:
    parts = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    return ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": parts, "strict": strict})


SCENARIOS: Final = (
    Scenario(
        "create access control entries",
        ApiKey.CREATE_ACLS,
        (
            created(
                acl(), acl(resource_pattern_type=PREFIXED, operation=ALL), acl(host="127.0.0.1", permission_type=DENY)
            ),
            created(acl(resource_type=99)),
            created(acl(resource_type=ANY)),
            created(acl(name="")),
            created(acl(principal="nobody")),
            created(acl(operation=ANY)),
            created(acl(operation=99)),
            created(acl(permission_type=ANY)),
            created(acl(resource_pattern_type=ANY)),
            created(acl(resource_type=CLUSTER, name="other")),
            acls(),
        ),
    ),
    Scenario(
        "describe access control entries",
        ApiKey.DESCRIBE_ACLS,
        (
            created(acl(), acl(name="*", operation=WRITE), acl(name="$u-", resource_pattern_type=PREFIXED)),
            acls(),
            acls(resource_type_filter=TOPIC, resource_name_filter="$u", pattern_type_filter=LITERAL),
            acls(resource_type_filter=TOPIC, resource_name_filter="$u-x", pattern_type_filter=2),
            acls(operation=WRITE),
            acls(resource_type_filter=GROUP),
            acls(resource_type_filter=99),
            acls(operation=99),
        ),
    ),
    Scenario(
        "delete access control entries",
        ApiKey.DELETE_ACLS,
        (
            created(acl(), acl(operation=WRITE)),
            deleted(acl_filter(operation=WRITE), acl_filter(operation=WRITE)),
            deleted(acl_filter()),
            deleted(acl_filter()),
            deleted(acl_filter(resource_type_filter=99)),
        ),
    ),
    Scenario(
        "change credentials",
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        (
            upsert(),
            upsert(iterations=10),
            upsert(iterations=1 << 20),
            upsert(mechanism=9),
            upsert(name=""),
            ask(
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
                {"deletions": [{"name": "$u", "mechanism": 2}], "upsertions": []},
                once=True,
            ),
            ask(
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
                {"deletions": [{"name": "$u", "mechanism": 1}], "upsertions": []},
                once=True,
            ),
            ask(
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
                {"deletions": [{"name": "$u", "mechanism": 1}, {"name": "$u", "mechanism": 1}], "upsertions": []},
                once=True,
            ),
        ),
    ),
    Scenario(
        "describe credentials",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        (
            upsert(),
            upsert(mechanism=2, iterations=8192, password=b"p" * 64),
            ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": "$u"}]}),
            ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": "$u-other"}]}),
            ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": "$u"}, {"name": "$u"}]}),
            ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": ""}]}),
        ),
    ),
    Scenario("say how to authenticate", ApiKey.SASL_HANDSHAKE, (ask(ApiKey.SASL_HANDSHAKE, {"mechanism": "PLAIN"}),)),
    Scenario("authenticate", ApiKey.SASL_AUTHENTICATE, (ask(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": b"\0a\0b"}),)),
    Scenario(
        "make tokens",
        ApiKey.CREATE_DELEGATION_TOKEN,
        (
            ask(
                ApiKey.CREATE_DELEGATION_TOKEN,
                {"renewers": [], "max_lifetime": 1000, "owner_principal_type": "", "owner_principal_name": ""},
                once=True,
            ),
        ),
    ),
    Scenario(
        "renew tokens",
        ApiKey.RENEW_DELEGATION_TOKEN,
        (ask(ApiKey.RENEW_DELEGATION_TOKEN, {"hmac": b"no", "renew_period": 1000}, once=True),),
    ),
    Scenario(
        "end tokens",
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        (ask(ApiKey.EXPIRE_DELEGATION_TOKEN, {"hmac": b"no", "expiry_time_period": 1000}, once=True),),
    ),
    Scenario(
        "describe tokens", ApiKey.DESCRIBE_DELEGATION_TOKEN, (ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, {"owners": None}),)
    ),
    Scenario(
        "change quotas",
        ApiKey.ALTER_CLIENT_QUOTAS,
        (
            quota([rate("producer_byte_rate", 1000.0)], ("user", "$u"), validate_only=True),
            quota(
                [rate("producer_byte_rate", 1e9), rate("request_percentage", 200.5)], ("user", "$u"), ("client-id", "c")
            ),
            quota([rate("no_such_rate", 1.0)], ("user", "$u")),
            quota([rate("producer_byte_rate", -1.0)], ("user", "$u")),
            quota([rate("producer_byte_rate", 1.5)], ("user", "$u")),
            quota([rate("connection_creation_rate", 5.0)], ("user", "$u")),
            quota([rate("connection_creation_rate", 1e6)], ("ip", "no address of a host")),
            quota([rate("producer_byte_rate", 5.0)], ("ip", "10.0.0.1")),
            quota([rate("producer_byte_rate", 5.0)], ("no such type", "x")),
            quota([rate("producer_byte_rate", 5.0)], ("user", "")),
            quota([rate("producer_byte_rate", 5.0)]),
            quota([rate("producer_byte_rate", 0.0, remove=True)], ("user", "$u"), ("client-id", "c")),
            quotas(("user", 0, "$u"), ("client-id", 0, "c")),
        ),
    ),
    Scenario(
        "describe quotas",
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        (
            quota([rate("consumer_byte_rate", 1e9)], ("user", "$u")),
            quota([rate("producer_byte_rate", 1e9)], ("user", "$u"), ("client-id", None)),
            quotas(("user", 0, "$u")),
            quotas(("user", 0, "$u"), strict=True),
            quotas(("user", 0, "$u"), ("client-id", 1, None)),
            quotas(("user", 0, "$u"), ("client-id", 2, None)),
            quotas(("user", 0, "$u-other")),
            quotas(("no such type", 0, "x")),
            quotas(("", 0, "x")),
            quotas(("user", 9, "x")),
            quotas(("user", 0, "a"), ("user", 0, "b")),
            quotas(("ip", 0, "10.0.0.1"), ("user", 0, "a")),
        ),
    ),
)

"""SCRAM credentials of users. Delegation tokens need a client that proved who it is: tests/conformance/test_security.py has those."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask

SHA_256, SHA_512 = 1, 2


def user(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> dict[str, Any]:
    secret = {"salt": b"salt", "salted_password": b"p" * 32}
    return {"name": name, "mechanism": mechanism, "iterations": iterations, **secret}


def alter(*upsertions: dict[str, Any], deletions: tuple[tuple[str, int], ...] = ()) -> Step:
    gone = [{"name": name, "mechanism": mechanism} for name, mechanism in deletions]
    return ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": gone, "upsertions": list(upsertions)}, once=True)


def describe(*names: str) -> Step:
    return ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": name} for name in names]})


SCENARIOS: Final = (
    Scenario(
        "credentials",
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        (
            # One user a request: Apache Kafka answers several in the order of a hash table.
            alter(user("$u-a")),
            describe("$u-a"),
            alter(user("$u-b", SHA_512, 8192)),
            describe("$u-b"),
            alter(deletions=(("$u-b", SHA_512),)),
            describe("$u-b"),
            alter(deletions=(("$u-c", SHA_256),)),
            alter(user("$u-a"), user("$u-a", SHA_512)),
            alter(user("$u-d", iterations=4095)),
            alter(user("$u-d", iterations=16385)),
            alter(user("$u-d", 3)),
            alter(user("")),
        ),
    ),
    Scenario(
        "described credentials",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        (
            alter(user("$u", SHA_512)),
            describe("$u"),
            describe("$u", "$u"),
            describe("$u-absent"),
        ),
    ),
)

"""Delegation tokens: rights and lifetimes; and changes of SCRAM credentials."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from broker.errors import (
    BrokerError,
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
)
from broker.security.config import SecurityConfig
from broker.security.principal import Principal
from broker.security.scram import ScramCredentials, ScramMechanism, changes
from broker.security.token_image import TokenImage
from broker.security.tokens import DelegationTokens
from tidegate.kit.config import parse
from tidegate.kit.scram import make_credential

ALICE, BOB, EVE = (Principal("User", name) for name in ("alice", "bob", "eve"))
DAY = 86_400_000


class Rig:
    """Tokens over an image of their own, at a time that a test sets."""

    def __init__(self, **settings: str) -> None:
        self.now = 1_000
        self.image = TokenImage()
        usual = {"delegation.token.secret.key": "key"}
        config = parse(SecurityConfig, usual | {name.replace("_", "."): value for name, value in settings.items()})
        self.tokens = DelegationTokens(config, self.image, self.commit, lambda: self.now)

    def commit(self, records: list[Any]) -> None:
        for record in records:
            self.image.replay(record)

    def secret(self) -> bytes:
        (token,) = self.image
        return self.tokens.hmac(token.token_id)


def test_a_token_holds_for_a_day_and_can_be_renewed_for_a_week() -> None:
    rig = Rig()
    token = rig.tokens.create(ALICE, ALICE, [BOB], -1)
    assert (token.issued_at, token.expires_at, token.max_at) == (1_000, 1_000 + DAY, 1_000 + 7 * DAY)
    rig.now += DAY // 2
    assert rig.tokens.renew(BOB, rig.secret(), -1) == rig.now + DAY
    assert rig.tokens.renew(ALICE, rig.secret(), 5_000) == rig.now + 5_000
    for _ in range(7):
        until = rig.tokens.renew(ALICE, rig.secret(), -1)
        rig.now = until
    assert until == token.max_at
    rig.now += 1
    with pytest.raises(DelegationTokenExpired):
        rig.tokens.renew(ALICE, rig.secret(), -1)
    assert rig.tokens.token(token.token_id) is None
    assert rig.tokens.sweep() == 1
    assert list(rig.image) == []


def test_a_lifetime_may_be_shorter_but_not_longer() -> None:
    rig = Rig(delegation_token_max_lifetime_ms="100000")
    assert rig.tokens.create(ALICE, ALICE, [], 50_000).max_at == 51_000
    assert rig.tokens.create(ALICE, ALICE, [], 500_000).expires_at == 101_000


def test_a_token_can_be_ended() -> None:
    rig = Rig()
    token = rig.tokens.create(ALICE, ALICE, [BOB], -1)
    assert rig.tokens.expire(BOB, rig.secret(), 10) == 1_010
    assert rig.tokens.token(token.token_id) is not None
    assert rig.tokens.expire(ALICE, rig.secret(), -1) == 1_000
    assert rig.tokens.token(token.token_id) is None


def test_only_owner_and_renewers_may() -> None:
    rig = Rig()
    rig.tokens.create(ALICE, ALICE, [BOB], -1)
    for change in (rig.tokens.renew, rig.tokens.expire):
        with pytest.raises(DelegationTokenOwnerMismatch):
            change(EVE, rig.secret(), -1)
        with pytest.raises(DelegationTokenNotFound):
            change(ALICE, b"another", -1)
    with pytest.raises(InvalidPrincipalType):
        rig.tokens.create(ALICE, ALICE, [Principal("Group", "g")], -1)


def test_without_a_key_there_are_no_tokens() -> None:
    rig = Rig(delegation_token_secret_key="")
    with pytest.raises(DelegationTokenAuthDisabled):
        rig.tokens.create(ALICE, ALICE, [], -1)
    with pytest.raises(DelegationTokenAuthDisabled):
        rig.tokens.renew(ALICE, b"", -1)


def test_an_image_is_made_again_of_its_records() -> None:
    rig = Rig()
    rig.tokens.create(ALICE, BOB, [BOB, EVE], -1)
    again = TokenImage()
    for record in rig.image.records():
        again.replay(record)  # type: ignore[arg-type]
    assert list(again) == list(rig.image)


def test_a_token_logs_in_with_its_hmac_as_password() -> None:
    rig = Rig()
    token = rig.tokens.create(ALICE, ALICE, [], -1)
    credential = rig.tokens.credential(token.token_id, ScramMechanism.SHA_256)
    password = base64.b64encode(rig.secret()).decode()
    assert credential == make_credential("sha256", password, salt=credential.salt)


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> Any:
    return SimpleNamespace(name=name, mechanism=mechanism, iterations=iterations, salt=b"s", salted_password=b"p" * 32)


def deletion(name: str, mechanism: int = 1) -> Any:
    return SimpleNamespace(name=name, mechanism=mechanism)


def applied(credentials: ScramCredentials, deletions: list[Any], upsertions: list[Any]) -> dict[str, int]:
    records, outcome = changes(credentials, deletions, upsertions)
    for record in records:
        credentials.replay(record)  # type: ignore[arg-type]
    return {name: error.code if isinstance(error, BrokerError) else 0 for name, error in outcome.items()}


def test_credentials_come_and_go() -> None:
    credentials = ScramCredentials()
    assert applied(credentials, [deletion("a")], [upsertion("b"), upsertion("c", 2)]) == {"a": 91, "b": 0, "c": 0}
    assert applied(credentials, [], [upsertion("b", 2, 8192)]) == {"b": 0}
    assert credentials.iterations("b") == [(ScramMechanism.SHA_256, 4096), (ScramMechanism.SHA_512, 8192)]
    again = ScramCredentials()
    for record in credentials.records():
        again.replay(record)  # type: ignore[arg-type]
    assert again._users == credentials._users
    assert applied(credentials, [deletion("b"), deletion("c", 2)], []) == {"b": 0, "c": 0}
    assert credentials.users() == ["b"]


@pytest.mark.parametrize(
    ("deletions", "upsertions", "code"),
    [
        ([], [upsertion("a"), upsertion("a", 2)], 92),
        ([deletion("b")], [upsertion("b")], 92),
        ([], [upsertion("")], 93),
        ([], [upsertion("a", 1, 4095)], 93),
        ([], [upsertion("a", 1, 16385)], 93),
        ([], [upsertion("a", 3)], 33),
        ([deletion("b", 0)], [], 33),
    ],
)
def test_changes_that_cannot_be_change_nothing(deletions: list[Any], upsertions: list[Any], code: int) -> None:
    credentials = ScramCredentials()
    applied(credentials, [], [upsertion("b")])
    before = list(credentials._users["b"].items())
    outcome = applied(credentials, deletions, upsertions)
    assert set(outcome.values()) == {code}
    assert list(credentials._users["b"].items()) == before
    assert credentials.users() == ["b"]

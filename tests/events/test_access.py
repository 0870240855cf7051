from __future__ import annotations

from pathlib import Path

import pytest

from events.access import Access, long_id
from events.config import EventsConfig
from events.errors import InvalidClient, InvalidLogin, InvalidSession
from tests.support.events import PASSWORD, USER, events_config
from tidegate.kit.addresses import host_port
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError


class Clock:
    now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(tmp_path: Path, clock: Clock) -> Access:
    return Access(
        events_config(tmp_path, **{"events.security.token": "TOKEN", "events.session.timeout.ms": 60_000}), clock
    )


def test_a_login_gives_a_session_that_names_the_organization(access: Access) -> None:
    session = access.login(USER.upper(), PASSWORD)
    assert session.id.startswith("00DTG0000000001!")
    assert access.session(session.id) == session.__class__(session.id, access.user_id, USER, session.expires_ms)


def test_the_security_token_may_follow_the_password(access: Access) -> None:
    access.login(USER, PASSWORD + "TOKEN")
    for user, password in ((USER, "TOKEN"), (USER, PASSWORD + "x"), ("nobody", PASSWORD), (USER, ""), ("", "ü")):
        with pytest.raises(InvalidLogin):
            access.login(user, password)


def test_the_client_has_a_secret(access: Access) -> None:
    access.login_client("tidegate", PASSWORD)
    for client, secret in (("tidegate", "x"), ("other", PASSWORD)):
        with pytest.raises(InvalidClient):
            access.login_client(client, secret)


def test_a_session_expires(access: Access, clock: Clock) -> None:
    session = access.login(USER, PASSWORD)
    clock.now += 59_999
    access.session(session.id)
    clock.now += 1
    with pytest.raises(InvalidSession):
        access.session(session.id)


def test_a_forged_session_is_refused(access: Access) -> None:
    good = access.login(USER, PASSWORD).id
    org, _, signed = good.partition("!")
    content, _, signature = signed.partition(".")
    for forged in (
        "",
        "!",
        ".",
        org,
        f"{org}!",
        f"{org}!{content}",
        f"{org}!{content}.",
        f"{org}!A{content}.{signature}",
        f"00DXX!{signed}",
        good + "x",
        f"{org}!ü.ü",
    ):
        with pytest.raises(InvalidSession):
            access.session(forged)


def test_a_revoked_session_stays_so_over_a_restart(access: Access, tmp_path: Path, clock: Clock) -> None:
    ended, kept = access.login(USER, PASSWORD).id, access.login(USER, PASSWORD).id
    access.revoke(ended)
    for opened in (access, Access(events_config(tmp_path), clock)):
        opened.session(kept)
        with pytest.raises(InvalidSession):
            opened.session(ended)
    assert (tmp_path / "session.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("short", "wanted"), [("00D000000000062", "00D000000000062EAA"), ("001D000000IqhSL", "001D000000IqhSLIAZ")]
)
def test_long_ids_have_salesforces_suffix(short: str, wanted: str) -> None:
    assert long_id(short) == wanted
    assert long_id(wanted) == wanted


def test_a_published_password_is_refused_where_others_can_reach_it() -> None:
    open_listener = {"http.listen": "0.0.0.0:8090"}
    with pytest.raises(ConfigError, match="http.listen.*published default"):
        parse(EventsConfig, open_listener)
    parse(EventsConfig, open_listener | {"events.password": "own", "events.client.secret": "own"})


@pytest.mark.parametrize("value", ["", "8090", "host:", "host:port", "host:70000", ":1"])
def test_a_wrong_address_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        parse(EventsConfig, {"http.listen": value})


def test_addresses_may_be_ipv6() -> None:
    assert host_port("[::1]:80") == ("::1", 80)

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.access import Access, long_id
from events.access.editing import AccountsFile
from events.access.errors import InsufficientScope
from events.access.scopes import IDENTITY_SCOPES
from events.access.tokens import Kind
from events.config import EventsConfig
from events.errors import InvalidLogin, InvalidSession
from tests.support.events import PASSWORD, USER, events_config
from tidegate.kit import secrets as secrets_module
from tidegate.kit.addresses import host_port
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError, UsageError
from tidegate.kit.secrets import hashed_secret, hashed_token, nobody, read_secret

pytestmark = pytest.mark.anyio


class Clock:
    now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(tmp_path: Path, clock: Clock) -> Access:
    return Access(events_config(tmp_path, **{"events.session.timeout.ms": 60_000}), clock)


def write(folder: Path, *users: dict[str, Any]) -> None:
    (folder / "accounts.json").write_text(json.dumps({"users": users}))


async def test_a_login_gives_a_session_that_names_the_organization(access: Access) -> None:
    session = await access.login(USER.upper(), PASSWORD)
    assert session.id.startswith("00DTG0000000001!")
    assert access.session(session.id) == session
    assert (session.user_name, session.client_id) == (USER, "")


@pytest.mark.parametrize(
    ("user", "password"), [(USER, PASSWORD + "x"), ("nobody", PASSWORD), (USER, ""), ("", "ü"), (USER, "x" * 2000)]
)
async def test_a_wrong_name_or_password_is_refused(access: Access, user: str, password: str) -> None:
    with pytest.raises(InvalidLogin):
        await access.login(user, password)


async def test_a_security_token_has_to_follow_the_password(tmp_path: Path, clock: Clock) -> None:
    access = Access(events_config(tmp_path, **{"events.security.token": "TOKEN"}), clock)
    await access.login(USER, PASSWORD + "TOKEN")
    for password in (PASSWORD, "TOKEN", PASSWORD + "token", "TOKEN" + PASSWORD):
        with pytest.raises(InvalidLogin):
            await access.login(USER, password)


async def test_users_of_the_file_log_in_by_their_hashed_password(tmp_path: Path, clock: Clock) -> None:
    token = "T" * 24
    shop = {"name": "Shop@example.com", "password": hashed_secret("gehe1m"), "securityToken": hashed_token(token)}
    write(tmp_path, shop, {"name": "gone", "password": hashed_secret("x"), "active": False})
    access = Access(events_config(tmp_path), clock)
    assert (await access.login("shop@EXAMPLE.com", "gehe1m" + token)).user_name == "Shop@example.com"
    await access.login(USER, PASSWORD)
    for name, password in (("shop@example.com", "gehe1m"), ("shop@example.com", token), ("gone", "x")):
        with pytest.raises(InvalidLogin):
            await access.login(name, password)


async def test_a_refusal_costs_the_same_whoever_is_named(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = {"name": "shop", "password": hashed_secret("1")}
    write(tmp_path, shop, {**shop, "name": "careful", "securityToken": hashed_token("T" * 24)})
    access = Access(events_config(tmp_path), clock)
    nobody()
    compared = []
    scrypt = secrets_module._scrypt
    monkeypatch.setattr(secrets_module, "_scrypt", lambda *arguments: compared.append(1) or scrypt(*arguments))
    for name, password in (
        ("shop", "2"),
        ("nobody", "2"),
        ("careful", "1"),
        ("careful", "2" + "T" * 24),
        ("careful", "1" + "x" * 24),
        (USER, "2"),
        ("", ""),
        ("nobody", "x" * 5000),
    ):
        compared.clear()
        with pytest.raises(InvalidLogin):
            await access.login(name, password)
        assert compared == [1], name


async def test_a_security_token_that_another_program_made_locks_nobody_out(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path, {"name": "shop", "password": hashed_secret("1"), "securityToken": hashed_token("another's")})
    await Access(events_config(tmp_path), clock).login("shop", "1another's")
    write(tmp_path, {"name": "shop", "password": hashed_secret("1"), "securityToken": hashed_secret("slow")})
    with pytest.raises(UsageError, match="securityToken of user shop must be a sha256 hash"):
        Access(events_config(tmp_path), clock)


async def test_a_changed_file_ends_the_sessions_of_users_that_are_no_more(tmp_path: Path, clock: Clock) -> None:
    shop = {"name": "shop", "password": hashed_secret("1")}
    write(tmp_path, shop)
    access = Access(events_config(tmp_path), clock)
    session = (await access.login("shop", "1")).id
    clock.now += 1000
    write(tmp_path, shop | {"read": ["*"]})
    assert access.session(session).user.may_read("Anything__e")
    for changed in (shop | {"active": False}, shop | {"sessionsFrom": clock.now}, shop | {"name": "other"}):
        write(tmp_path, changed)
        await asyncio.sleep(0)  # the file is looked at once in a turn of the event loop
        with pytest.raises(InvalidSession):
            access.session(session)
    write(tmp_path, shop)
    await asyncio.sleep(0)
    access.session(session)


async def test_a_user_that_was_removed_and_added_again_is_another(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path, {"name": "shop", "password": hashed_secret("1")})
    access = Access(events_config(tmp_path), clock)
    session = (await access.login("shop", "1")).id
    write(tmp_path)
    await asyncio.sleep(0)
    write(tmp_path, {"name": "shop", "password": hashed_secret("1")})
    await asyncio.sleep(0)
    with pytest.raises(InvalidSession):
        access.session(session)
    await access.login("shop", "1")


async def test_another_password_in_the_configuration_ends_the_sessions_of_its_user(
    tmp_path: Path, clock: Clock
) -> None:
    def started(password: str) -> Access:
        return Access(events_config(tmp_path, **{"events.password": password}), clock)

    session = (await started("first").login(USER, "first")).id
    started("first").session(session)  # a restart ends none
    with pytest.raises(InvalidSession):
        started("second").session(session)


async def test_an_app_that_was_removed_and_added_again_is_another(tmp_path: Path, clock: Clock) -> None:
    file = AccountsFile(tmp_path / "accounts.json")
    file.add_user("shop", "1")
    file.add_app("page", None)
    access = Access(events_config(tmp_path), clock)
    user, app = access.accounts.named("shop"), access.accounts.apps["page"]
    assert user is not None
    session = access.open(user, app).id
    refresh, token = access.issue(Kind.REFRESH, user, app, -1)
    access.session(session)
    file.remove_app("page")
    await asyncio.sleep(0.002)  # when it was added is kept in milliseconds
    file.add_app("page", None)
    with pytest.raises(InvalidSession):
        access.session(session)
    assert access.tokens.read(Kind.REFRESH, refresh) == token
    assert access.holder(token) is None


async def test_another_password_of_the_configured_user_ends_its_sessions(tmp_path: Path, clock: Clock) -> None:
    session = (await Access(events_config(tmp_path), clock).login(USER, PASSWORD)).id
    assert Access(events_config(tmp_path), clock).session(session).user_name == USER
    with pytest.raises(InvalidSession):
        Access(events_config(tmp_path, **{"events.password": "another"}), clock).session(session)


async def test_a_user_whom_an_app_admits_no_more_loses_its_sessions(tmp_path: Path, clock: Clock) -> None:
    shop = {"name": "shop", "password": hashed_secret("1")}

    def write_app(users: list[str]) -> None:
        told = {"users": [shop], "connectedApps": [{"clientId": "page", "users": users}]}
        (tmp_path / "accounts.json").write_text(json.dumps(told))

    write_app(["*"])
    access = Access(events_config(tmp_path), clock)
    user = access.accounts.named("shop")
    assert user is not None
    session = access.open(user, access.accounts.apps["page"]).id
    write_app(["boss"])
    await asyncio.sleep(0)
    with pytest.raises(InvalidSession):
        access.session(session)


async def test_a_session_has_the_scopes_of_its_app(access: Access) -> None:
    user, app = access.accounts.named(USER), access.accounts.apps["tidegate"]
    assert user is not None
    for scopes in (("id",), ("web", "refresh_token"), ()):
        session = access.open(user, app, scopes).id
        for _ in range(2):
            with pytest.raises(InsufficientScope, match="scope api or full"):
                access.session(session)
        if scopes:
            assert access.session(session, IDENTITY_SCOPES).scopes == set(scopes)
    assert access.session(access.open(user, app, ["full"]).id).user == user


async def test_a_list_of_ended_sessions_that_is_damaged_is_told(access: Access, tmp_path: Path, clock: Clock) -> None:
    access.revoke((await access.login(USER, PASSWORD)).id)
    for damaged in ("{", "[]", '{"x": "y"}'):
        (tmp_path / "revoked-sessions.json").write_text(damaged)
        with pytest.raises(
            UsageError, match=r"revoked-sessions\.json, which says which sessions are ended.*session\.key"
        ):
            Access(events_config(tmp_path), clock)


async def test_a_file_that_breaks_locks_nobody_out(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path, {"name": "shop", "password": hashed_secret("1")})
    access = Access(events_config(tmp_path), clock)
    (tmp_path / "accounts.json").write_text("{")
    await access.login("shop", "1")


async def test_the_configured_user_may_be_left_out(tmp_path: Path, clock: Clock) -> None:
    access = Access(events_config(tmp_path, **{"events.user": "", "events.client.id": ""}), clock)
    with pytest.raises(InvalidLogin):
        await access.login("", PASSWORD)
    assert not access.accounts.apps


async def test_a_session_expires(access: Access, clock: Clock) -> None:
    session = await access.login(USER, PASSWORD)
    clock.now += 59_999
    access.session(session.id)
    clock.now += 1
    with pytest.raises(InvalidSession):
        access.session(session.id)


async def test_a_forged_session_is_refused(access: Access) -> None:
    good = (await access.login(USER, PASSWORD)).id
    org, _, signed = good.partition("!")
    content, _, signature = signed.partition(".")
    refresh, _ = access.issue(Kind.REFRESH, access.session(good).user, None, -1)
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
        refresh,
        f"{org}!{refresh.removeprefix('5Aep861')}",
    ):
        with pytest.raises(InvalidSession):
            access.session(forged)


async def test_a_revoked_session_stays_so_over_a_restart(access: Access, tmp_path: Path, clock: Clock) -> None:
    ended, kept = (await access.login(USER, PASSWORD)).id, (await access.login(USER, PASSWORD)).id
    access.revoke(ended)
    for opened in (access, Access(events_config(tmp_path), clock)):
        opened.session(kept)
        with pytest.raises(InvalidSession):
            opened.session(ended)
    assert (tmp_path / "session.key").stat().st_mode & 0o777 == 0o600


@settings(max_examples=100)
@given(st.text(max_size=40) | st.builds("scrypt:{}:{}:{}:{}".format, *[st.integers() | st.text(max_size=8)] * 4))
def test_any_text_is_a_hash_or_refused(text: str) -> None:
    try:
        read_secret(text)
    except ValueError as error:
        assert "not a hash" in str(error)


def test_secrets_are_not_shown() -> None:
    kept = read_secret(hashed_secret("gehe1m"))
    assert kept.matches("gehe1m")
    assert not kept.matches("geheim")
    assert not read_secret(hashed_token("x" * 24)).matches("y" * 24)


@pytest.mark.parametrize(
    ("short", "expected"), [("00D000000000062", "00D000000000062EAA"), ("001D000000IqhSL", "001D000000IqhSLIAZ")]
)
def test_long_ids_have_salesforces_suffix(short: str, expected: str) -> None:
    assert long_id(short) == expected
    assert long_id(expected) == expected


def test_a_published_password_is_refused_where_others_can_reach_it() -> None:
    open_listener = {"http.listen": "0.0.0.0:8090"}
    with pytest.raises(ConfigError, match="http.listen.*published default"):
        parse(EventsConfig, open_listener)
    parse(EventsConfig, open_listener | {"events.password": "own", "events.client.secret": "own"})
    parse(EventsConfig, open_listener | {"events.user": "", "events.client.id": ""})


@pytest.mark.parametrize("value", ["", "8090", "host:", "host:port", "host:70000", ":1"])
def test_a_wrong_address_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        parse(EventsConfig, {"http.listen": value})


def test_addresses_may_be_ipv6() -> None:
    assert host_port("[::1]:80") == ("::1", 80)

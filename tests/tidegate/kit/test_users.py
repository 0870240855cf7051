"""The file of a platform's users: rights, passwords, and what is wrong in it."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.processor_time import processor_time
from tidegate.kit.errors import UsageError
from tidegate.kit.users import ADMIN, PlatformUser, Right, Users, UsersFile, read_users, with_password, write_users


def user(name: str, *rights: str, **more: Any) -> PlatformUser:
    return PlatformUser(name, rights=tuple(map(Right.parse, rights)), **more)


@pytest.mark.parametrize(
    ("right", "asked", "allowed"),
    [
        ("read topic orders", ("read", "topic", "orders"), True),
        ("read topic orders", ("read", "topic", "orders2"), False),
        ("read topic orders*", ("read", "topic", "orders2"), True),
        ("read topic *", ("read", "topic", "x"), True),
        ("read topic orders", ("write", "topic", "orders"), False),
        ("manage topic orders", ("write", "topic", "orders"), True),
        ("manage topic orders", ("read", "group", "orders"), False),
        ("read platform", ("read", "platform", "*"), True),
        ("read platform", ("manage", "platform", "*"), False),
        ("admin", ("manage", "event", "Order__e"), True),
    ],
)
def test_a_right_allows_what_it_says(right: str, asked: tuple[str, str, str], allowed: bool) -> None:
    assert user("u", right).may(*asked) is allowed
    assert user("u", right, active=False).may(*asked) is False


@pytest.mark.parametrize("text", ["", "read", "read topic", "eat topic x", "read table x", "read topic a b", "Admin"])
def test_what_is_no_right_is_told_how_one_looks(text: str) -> None:
    with pytest.raises(ValueError, match="VERB KIND NAME"):
        Right.parse(text)


def test_the_right_to_a_file_names_an_absolute_path_which_may_have_blanks() -> None:
    right = Right.parse("read file /srv/in box/*")
    assert right.name == "/srv/in box/*" and right.covers("read", "file", "/srv/in box/a.csv")
    with pytest.raises(ValueError, match="absolute path"):
        Right.parse("read file srv/*")


def test_a_delegated_login_is_its_user_for_as_long_as_the_user_may_log_in(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    users = Users([user("alice", "read topic a"), user("bob")]).with_delegation_key()
    write_users(path, users)
    file = UsersFile(path)

    def login(name: str, password: str) -> str | None:
        logged_in = asyncio.run(file.login(name, password))
        return None if logged_in is None else logged_in.name

    password = users.delegate_password("alice")
    assert users.delegate_name("alice") == "tidegate/alice"
    assert login("tidegate/alice", password) == "alice"
    assert login("tidegate/bob", password) is login("tidegate/alice", "") is login("alice", password) is None
    assert login("tidegate/nobody", users.delegate_password("nobody")) is None
    write_users(path, users.having(user("alice", active=False)))
    assert login("tidegate/alice", password) is None
    write_users(path, users.with_delegation_key())
    assert login("tidegate/alice", password) is None
    write_users(path, Users([user("alice")]))  # a file from before delegated logins
    assert login("tidegate/alice", password) is None


def test_a_delegation_key_reads_back_and_a_wrong_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    users = Users([user("alice")]).with_delegation_key()
    write_users(path, users.having(user("bob")).without("alice"))
    assert read_users(path).delegation_key == users.delegation_key != b""
    for wrong in ('"?"', '"AAAA"', "1", "[]"):
        path.write_text(f'{{"users": [], "delegationKey": {wrong}}}')
        with pytest.raises(UsageError, match="delegationKey must be 32 bytes in base64"):
            read_users(path)
    with pytest.raises(UsageError, match="has no delegationKey"):
        Users([user("alice")]).delegate_password("alice")


def test_rights_read_back_as_they_were_written() -> None:
    for text in ("admin", "read topic orders*", "manage platform *", "read file /srv/in box/*"):
        assert str(Right.parse(text)) == text
    assert Right.parse("admin") == ADMIN


def test_a_user_who_may_do_something_with_some_thing_of_a_kind() -> None:
    assert user("u", "manage connector a*").may_some("read", "connector")
    assert not user("u", "read connector a*").may_some("manage", "connector")
    assert user("u", "admin").may_some("manage", "connector")


def test_the_file_holds_no_password_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    write_users(path, Users([with_password(user("alice", "read topic a"), "secret word", now_ms=5)]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "secret word" not in path.read_text()
    (read,) = read_users(path)
    assert (read.name, read.rights, read.sessions_from_ms) == ("alice", (Right("read", "topic", "a"),), 5)
    assert read.password is not None and read.password.matches("secret word") and not read.password.matches("secret")
    assert set(read.scram) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}


def test_who_gives_the_right_password_is_known_and_a_change_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    alice = with_password(user("alice"), "one", now_ms=1)
    write_users(path, Users([alice]))
    file = UsersFile(path)

    def verified(name: str, password: str) -> str | None:
        verified = asyncio.run(file.verified(name, password))
        return verified.name if verified is not None else None

    assert [verified("alice", "one"), verified("alice", "one"), verified("alice", "two")] == ["alice", "alice", None]
    assert verified("bob", "one") is None and verified("alice", "") is None
    write_users(path, Users([with_password(alice, "two", now_ms=2)]))
    assert [verified("alice", "one"), verified("alice", "two")] == [None, "alice"]
    path.write_text("{")
    assert verified("alice", "two") == "alice", "a slip of the pen locks nobody out"
    write_users(path, Users([PlatformUser("alice", active=False, kept=alice.kept, password=alice.password)]))
    assert verified("alice", "one") is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "users is a list"),
        ('{"users": [1]}', "users is a list"),
        ('{"users": [{}]}', "name of a user must be text"),
        ('{"users": [{"name": "a", "rights": ["eat"]}]}', "user a: 'eat' is no right"),
        ('{"users": [{"name": "a", "password": "plain"}]}', "user a: it is not a hash"),
        ('{"users": [{"name": "a", "scram": {"MD5": "x"}}]}', "SCRAM-SHA-256"),
        ('{"users": [{"name": "a", "scram": {"SCRAM-SHA-256": "x"}}]}', "no SCRAM credential"),
        ('{"users": [{"name": "a", "right": []}]}', "has 'right'"),
        ('{"users": [{"name": "a", "active": 1}]}', "active is true or false"),
        ('{"users": [{"name": "a"}, {"name": "a"}]}', "two users 'a'"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=told):
        read_users(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        UsersFile(tmp_path / "none.json")


def test_the_form_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    write_users(path, Users([user("a", "admin")]))
    assert json.loads(path.read_text()) == {
        "users": [{"name": "a", "password": "", "scram": {}, "rights": ["admin"], "active": True, "sessionsFrom": 0}]
    }


def test_a_file_of_many_users_is_soon_read(tmp_path: Path) -> None:
    """Names that were looked for twice by counting each took time by the square of their number."""
    path = tmp_path / "users.json"
    path.write_text(json.dumps({"users": [{"name": f"user{number}"} for number in range(30_000)]}))
    with processor_time(2, "30,000 users"):
        assert len(list(read_users(path))) == 30_000

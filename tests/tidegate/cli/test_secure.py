"""``tidegate secure`` and ``tidegate users``: which passwords are taken, and what is checked before one is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidegate.cli.secure import secure, users
from tidegate.security import find_security, init_security


def run(data: Path, *arguments: str, password: str = "") -> Result:
    group, *rest = arguments
    command = {"secure": secure, "users": users}[group]
    return CliRunner().invoke(command, [*rest, "--data", str(data)], env={"TIDEGATE_NEW_PASSWORD": password})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    init_security(tmp_path, hosts=[], admin="admin", password="correct-horse")
    return tmp_path


@pytest.mark.parametrize(("password", "told"), [("1234567", "has 7 characters: at least 8"), ("ALICE-SMITH", "itself")])
def test_a_password_that_is_easy_to_guess_is_refused(data: Path, tmp_path: Path, password: str, told: str) -> None:
    for arguments in (
        ("secure", "init", "--admin", "alice-smith"),
        ("users", "add", "alice-smith"),
    ):
        folder = tmp_path / "new" if arguments[0] == "secure" else data
        assert told in str(run(folder, *arguments, password=password).exception)
        if arguments[0] == "secure":
            assert find_security(folder) is None
    assert run(data, "users", "add", "alice-smith", password="12345678").exit_code == 0
    assert told in str(run(data, "users", "password", "alice-smith", password=password).exception)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("add", "alice", "--may", "eat topic x"), "is no right: write VERB KIND NAME"),
        (("add", "admin"), "there is a user 'admin'"),
        (("password", "bob"), "there is no user 'bob'"),
    ],
)
def test_what_is_wrong_is_told_before_a_password_is_asked_for(
    data: Path, arguments: tuple[str, ...], told: str
) -> None:
    refused = run(data, "users", *arguments)
    assert told in str(refused.exception)
    assert "Password" not in refused.output


def test_single_rights_are_granted_and_revoked(data: Path) -> None:
    run(data, "users", "add", "alice", "--may", "read topic orders", password="12345678")
    granted = run(data, "users", "grant", "alice", "write topic orders", "read topic orders")
    assert granted.output == "alice may: read topic orders, write topic orders\n"
    revoked = run(data, "users", "revoke", "alice", "read topic orders")
    assert revoked.output == "alice may: write topic orders\n"
    told = str(run(data, "users", "revoke", "alice", "read topic orders").exception)
    assert told == "alice does not have the right 'read topic orders'; it has: write topic orders"
    assert "there is no user 'bob'" in str(run(data, "users", "grant", "bob", "admin").exception)
    assert "is no right" in str(run(data, "users", "grant", "alice", "eat topic x").exception)

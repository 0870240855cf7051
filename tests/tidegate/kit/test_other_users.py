"""Which accounts count as other users of the machine."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from tidegate.kit.other_users import other_users


def account(name: str, uid: int, shell: str, home: object) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", str(home), shell))


@pytest.mark.parametrize(
    ("uid", "shell", "counts"),
    [
        (1000, "/bin/bash", True),
        (501 if os.uname().sysname == "Darwin" else 4711, "/usr/bin/zsh", True),
        (0, "/bin/bash", False),
        (33, "/bin/bash", False),
        (1001, "/usr/sbin/nologin", False),
        (1001, "/bin/false", False),
        (1001, "", False),
        (65534, "/bin/bash", False),
    ],
)
def test_people_count_and_services_do_not(tmp_path: Path, uid: int, shell: str, counts: bool) -> None:
    assert other_users([account("somebody", uid, shell, tmp_path)]) == (["somebody"] if counts else [])


def test_an_account_without_a_home_is_nobodys(tmp_path: Path) -> None:
    assert other_users([account("gone", 1000, "/bin/bash", tmp_path / "missing")]) == []


def test_we_are_no_other_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    accounts = [account("me", 1000, "/bin/bash", tmp_path), account("you", 1001, "/bin/bash", tmp_path)]
    assert other_users(accounts) == ["you"]
    assert isinstance(other_users(), list)

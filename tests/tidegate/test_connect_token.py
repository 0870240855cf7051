"""Connect requires a token where other users may log in to the machine, and the command line reads it automatically."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import requests

from tests.support.platform import running_platform, tidegate
from tidegate import platform
from tidegate.kit.errors import UsageError
from tidegate.kit.users import INTERNAL_USER
from tidegate.platform import make_plan
from tidegate.security import connect_token, init_security


@pytest.mark.parametrize(
    ("setting", "variable", "others", "asks"),
    [
        (None, None, ["bob"], True),
        (None, None, [], False),
        (None, "never", ["bob"], False),
        (None, "always", [], True),
        ("auto", "always", [], True),
        ("always", "never", [], True),
        ("never", "always", ["bob"], False),
    ],
)
def test_a_token_is_required_where_the_machine_has_other_users(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    variable: str | None,
    others: list[str],
    asks: bool,
) -> None:
    monkeypatch.delenv("TIDEGATE_CONNECT_TOKEN", raising=False)
    if variable is not None:
        monkeypatch.setenv("TIDEGATE_CONNECT_TOKEN", variable)
    monkeypatch.setattr(platform, "other_users", lambda: others)
    file = tmp_path / "tidegate.toml"
    file.write_text("" if setting is None else f"[security]\n'connect.token' = '{setting}'\n")
    data = tmp_path / "data"
    plan = make_plan(data, listen={}, config_file=file)
    assert ("users.file" in plan.properties["connect"]) is asks
    assert (connect_token(data) is not None) is asks
    if asks:
        assert stat.S_IMODE((data / "connect.token").stat().st_mode) == 0o600
        token = connect_token(data)
        make_plan(data, listen={}, config_file=file)
        assert connect_token(data) == token, "it stays over restarts"
        assert token not in (data / "connect.users.json").read_text()


def test_with_users_there_is_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_CONNECT_TOKEN", "always")
    make_plan(tmp_path, listen={})
    security = init_security(tmp_path, hosts=[], admin="root", password="x")
    plan = make_plan(tmp_path, listen={})
    assert plan.properties["connect"]["users.file"] == str(security.users_file)
    assert connect_token(tmp_path) is None


def test_wrong_settings_are_told(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.toml"
    for text, words in (("'connect.token' = 'yes'", "it may be auto, always, never"), ("x = 1", "has no key x")):
        file.write_text(f"[security]\n{text}\n")
        with pytest.raises(UsageError, match=words):
            make_plan(tmp_path / "data", listen={}, config_file=file)


def test_the_command_line_reads_it_and_strangers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_CONNECT_TOKEN", "always")
    with running_platform(tmp_path, "--without", "events") as running:
        assert "Connect asks for a login" in (running.data / "logs" / "up.log").read_text()
        url = f"{running.addresses['connect']}/connectors"
        assert requests.get(url, timeout=60).status_code == 401
        assert requests.post(url, json={"name": "x", "config": {}}, timeout=60).status_code == 401
        assert requests.get(url, auth=(INTERNAL_USER, "wrong"), timeout=60).status_code == 401
        token = connect_token(running.data)
        assert token is not None
        assert requests.get(url, auth=(INTERNAL_USER, token), timeout=60).json() == []
        assert tidegate("connectors", "list", "--json", "--data", running.data).stdout.strip() == "{}"

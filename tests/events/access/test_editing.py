from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from events.access import Access
from events.errors import InvalidLogin, InvalidSession
from tests.support.events import events_config
from tidegate.cli.events import events

pytestmark = pytest.mark.anyio


class Commands:
    """``tidegate events ...`` on a separate folder."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def __call__(self, *arguments: str, wrong: bool = False, **environment: str) -> str:
        environment = {"TIDEGATE_NEW_PASSWORD": "1st"} | environment
        done = CliRunner().invoke(events, [*arguments, "--data", str(self.data)], env=environment)
        assert (done.exception is not None) == wrong, done.output
        return str(done.exception) if wrong else done.output

    @property
    def told(self) -> Any:
        return json.loads((self.data / "events/accounts.json").read_text())


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.kit.secrets._COST", 16)


@pytest.fixture
def run(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


@pytest.fixture
def access(tmp_path: Path) -> Access:
    now = [4_000_000_000_000]  # later than any change, and going on

    def clock() -> int:
        now[0] += 10
        return now[0]

    return Access(events_config(tmp_path / "events"), clock)


async def test_a_user_comes_changes_and_goes_under_a_running_service(run: Commands, access: Access) -> None:
    run("users", "add", "shop", "--create", "A__e", "--read", "*", "--permission", "ViewSetup")
    user = (await access.login("SHOP", "1st")).user
    assert (user.create, user.read) == (("A__e",), ("*",))
    run("users", "change", "shop", "--read", "", "--create", "B__e", "--create", "C__e")
    user = (await access.login("shop", "1st")).user
    assert (user.create, user.read, len(user.permissions)) == (("B__e", "C__e"), (), 1)
    token = run("users", "token", "shop").strip()
    await access.login("shop", "1st" + token)
    with pytest.raises(InvalidLogin):
        await access.login("shop", "1st")
    run("users", "token", "shop", "--drop")
    run("users", "password", "shop", TIDEGATE_NEW_PASSWORD="2nd")
    await access.login("shop", "2nd")
    run("users", "change", "shop", "--frozen")
    with pytest.raises(InvalidLogin):
        await access.login("shop", "2nd")
    run("users", "change", "shop", "--active")
    session = await access.login("shop", "2nd")
    run("users", "remove", "shop")
    with pytest.raises(InvalidSession):
        access.session(session.id)


@pytest.mark.parametrize("command", ["logout", "password"])
async def test_sessions_before_are_ended_and_later_ones_are_not(tmp_path: Path, run: Commands, command: str) -> None:
    run("users", "add", "shop")
    now = [1_000]
    access = Access(events_config(tmp_path / "events"), lambda: now[0])
    before = await access.login("shop", "1st")
    run("users", command, "shop")
    with pytest.raises(InvalidSession):
        access.session(before.id)
    now[0] = run.told["users"][0]["sessionsFrom"]
    access.session((await access.login("shop", "1st")).id)


def test_apps_come_and_go(run: Commands, access: Access) -> None:
    run("apps", "add", "warehouse", "--run-as", "shop", "--user", "*@shop")
    run("apps", "add", "page", "--no-secret", "--callback", "http://localhost/a", "--callback", "http://localhost/b")
    apps = access.accounts.apps
    assert set(apps) == {"tidegate", "warehouse", "page"}
    assert (apps["warehouse"].run_as, apps["warehouse"].users, apps["page"].secret) == ("shop", ("*@shop",), None)
    assert "http://localhost/a http://localhost/b" in run("apps", "list")
    run("apps", "remove", "page")
    assert [app["clientId"] for app in json.loads(run("apps", "list", "--json"))] == ["warehouse"]


def test_secrets_are_hashed_and_never_listed(run: Commands) -> None:
    run("users", "add", "shop", TIDEGATE_NEW_PASSWORD="gehe1m")
    file = run.data / "events/accounts.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "gehe1m" not in file.read_text()
    assert json.loads(run("users", "list", "--json"))[0]["password"] == "[hidden]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("users", "add", "SHOP"), "there is a user SHOP already"),
        (("users", "change", "other"), "has no user other; it has shop"),
        (("users", "change", "shop", "--permission", "All"), "permission 'All' is not known"),
        (("apps", "remove", "x"), "has no connected app x; it has none"),
        (("apps", "add", "x", "--certificate", "no.pem"), "cannot read the certificate"),
    ],
)
def test_a_wrong_change_changes_nothing(run: Commands, arguments: tuple[str, ...], said: str) -> None:
    run("users", "add", "shop")
    before = run.told
    words = run(*arguments, wrong=True)
    assert said in words
    assert ".new" not in words
    assert run.told == before
    assert len(list((run.data / "events").iterdir())) == 1

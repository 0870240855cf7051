"""The folder with a platform's security settings, and what ``up`` refuses without it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.platform import tidegate
from tidegate.kit.errors import UsageError
from tidegate.kit.users import INTERNAL_USER
from tidegate.platform import make_plan, make_private
from tidegate.security import find_security, init_security


def modes(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}


def test_everything_in_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    security = init_security(tmp_path, hosts=["kafka.test"], admin="root", password="secret")
    assert stat.S_IMODE(security.folder.stat().st_mode) == 0o700
    readable = {name for name, mode in modes(security.folder).items() if int(mode, 8) & 0o077}
    assert readable == {"tls/ca.pem", "tls/server.pem"}, "certificates are no secret"
    assert "secret" not in security.users_file.read_text()
    with pytest.raises(UsageError, match="is there already"):
        init_security(tmp_path, hosts=[], admin="root", password="x")


def test_a_folder_that_was_half_made_is_made_anew(tmp_path: Path) -> None:
    security = init_security(tmp_path, hosts=[], admin="root", password="one")
    (security.folder / "settings.json").unlink()  # written last
    assert find_security(tmp_path) is None
    init_security(tmp_path, hosts=[], admin="root", password="two")
    assert {user.name for user in security.users} == {INTERNAL_USER, "root"}


def test_users_are_told_apart_from_what_is_none(tmp_path: Path) -> None:
    security = init_security(tmp_path, hosts=[], admin="root", password="x")
    for name, told in (
        ("root", "there is a user"),
        ("a:b", "cannot be a user's name"),
        ("", "cannot be"),
        (INTERNAL_USER, "there is a user"),
    ):
        with pytest.raises(UsageError, match=told):
            security.add_user(name, "x", [])
    with pytest.raises(UsageError, match="VERB KIND NAME"):
        security.add_user("a", "x", ["eat topic x"])
    with pytest.raises(UsageError, match="there is no user 'b'; there are: root"):
        security.set_password("b", "x")
    with pytest.raises(UsageError, match="the components themselves"):
        security.remove_user(INTERNAL_USER)


def test_the_certificate_is_made_anew_for_further_hosts_only(tmp_path: Path) -> None:
    security = init_security(tmp_path, hosts=["a.test"], admin="root", password="x")
    assert not security.renew() and not security.renew(["a.test", "127.0.0.1"])
    before = security.identity.read_text()
    assert security.renew(["b.test"]) and security.identity.read_text() != before
    assert set(security.hosts) >= {"a.test", "b.test"}


@pytest.mark.parametrize("face", ["broker", "registry", "connect", "events", "pubsub"])
def test_an_address_that_others_reach_is_refused_without_users(tmp_path: Path, face: str) -> None:
    for host in ("0.0.0.0", "192.168.1.5", "[::]"):
        with pytest.raises(UsageError, match=f"{face} would listen on .* secure init --data {tmp_path}"):
            make_plan(tmp_path, listen={face: f"{host}:12345"})
    make_plan(tmp_path, listen={face: "127.0.0.1:12345"})
    config = tmp_path / "tidegate.toml"
    config.write_text("[security]\nallow.insecure.listeners = true\n")
    make_plan(tmp_path, listen={face: "0.0.0.0:12345"}, config_file=config)
    init_security(tmp_path, hosts=[], admin="root", password="x")
    make_plan(tmp_path, listen={face: "0.0.0.0:12345"})


def test_a_secret_of_a_plan_is_in_no_argument(tmp_path: Path) -> None:
    security = init_security(tmp_path, hosts=[], admin="root", password="x")
    plan = make_plan(tmp_path, listen={})
    assert all(security.internal_password in str(plan.properties[name]) for name in ("registry", "connect", "events"))
    assert security.internal_password not in str(plan.properties["broker"])


def test_the_data_folder_is_closed_to_others(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    make_private(data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    data.chmod(0o755)
    (data / "run").mkdir()
    make_private(data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    other = tmp_path / "others"
    other.mkdir(mode=0o755)
    (other / "file").touch()
    make_private(other)
    assert stat.S_IMODE(other.stat().st_mode) == 0o755, "a folder with other things in it is not ours to close"


def test_commands_say_what_is_missing(tmp_path: Path) -> None:
    done = tidegate("users", "list", "--data", tmp_path, check=False)
    assert done.returncode == 1 and "tidegate secure init --data" in done.stderr


def test_the_pubsub_api_listens_without_tls_only_where_there_are_no_users_or_it_is_asked_for(tmp_path: Path) -> None:
    def plain(**more: Path) -> str:
        return make_plan(tmp_path, listen={}, **more).properties["events"]["pubsub.plain.listen"]

    assert plain() == "127.0.0.1:7080"
    init_security(tmp_path, hosts=[], admin="root", password="secret")
    assert plain() == ""
    config = tmp_path / "tidegate.toml"
    config.write_text('[events]\n"pubsub.plain.listen" = "127.0.0.1:7081"\n')
    assert plain(config_file=config) == "127.0.0.1:7081"

"""Contexts: the file, precedence, and addresses that get no login."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.support.platform import tidegate
from tidegate.cli.contexts import Context, Contexts, contexts_file, read_contexts
from tidegate.kit.config import Password
from tidegate.kit.errors import UsageError


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings" / "contexts.json"
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def test_the_file_is_its_owners_alone_and_comes_back_whole(file: Path) -> None:
    context = Context("", {"broker": "kafka:9092"}, "/ca.pem", "alice", Password("correct-horse"))
    Contexts().having("prod", context).using("prod").write()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    known = read_contexts()
    assert known.current == "prod" and known.by_name == {"prod": context}
    assert known.named("prod").password.reveal() == "correct-horse"
    assert "correct-horse" not in repr(known)
    assert "correct-horse" not in tidegate("use", "--json").stdout
    assert known.without("prod") == Contexts()


def test_without_home_folders_of_its_own_it_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_CONTEXTS")
    assert contexts_file().name == "contexts.json" and contexts_file().parent.name == "tidegate"


def test_a_file_that_is_none_of_contexts_is_named(file: Path) -> None:
    file.parent.mkdir()
    for content in ("{", "[]", '{"contexts": {"a": 1}, "current": ""}'):
        file.write_text(content)
        with pytest.raises(UsageError, match="is no file of contexts"):
            read_contexts()


def test_init_makes_a_context_and_does_not_choose_it(tmp_path: Path) -> None:
    for folder in ("one", "two", "one"):
        (tmp_path / folder / "data" / "security" / "settings.json").unlink(missing_ok=True)
        said = tidegate("secure", "init", "--password", "correct-horse", "--data", tmp_path / folder / "data").stdout
    assert "`tidegate use local` has commands go to it" in said
    known = read_contexts()
    assert {name: Path(context.data).parent.name for name, context in known.by_name.items()} == {
        "local": "one",
        "local-2": "two",
    }
    assert known.current == ""


def test_init_goes_on_where_no_context_can_be_kept(tmp_path: Path, file: Path) -> None:
    file.parent.write_text("no folder")
    said = tidegate("secure", "init", "--password", "correct-horse", "--data", tmp_path / "data").stdout
    assert "admin may do everything" in said and "there is no context for it: cannot" in said


def test_wrong_use_is_told(tmp_path: Path) -> None:
    for arguments, words in (
        (("use", "nowhere"), "there is no context 'nowhere'; there are: none yet"),
        (("use", "a", "--user", "x", "--password", "y"), "the context a has no address"),
        (("use", "--remove"), "give the name of the context first"),
        (("use", "a", "--data", tmp_path, "--broker", "b:1"), "give it alone"),
        (("--context", "nowhere", "topics", "list"), "there is no context 'nowhere'"),
        (("--context", "a", "topics", "list", "--data", tmp_path), "give --context or --data"),
    ):
        done = tidegate(*arguments, check=False)
        assert done.returncode != 0 and words in done.stderr, (arguments, done.stderr)
    tidegate("use", "far", "--broker", "127.0.0.1:1")
    done = tidegate("connectors", "list", check=False)
    assert "the context far has no address of connect: `tidegate use far --connect ...` gives it one" in done.stderr
    done = tidegate("--context", "far", "status", check=False)
    assert "this command needs its folder" in done.stderr


def test_a_login_goes_to_the_addresses_of_its_context_only(tmp_path: Path) -> None:
    from tidegate.cli import credentials, options

    used = ("prod", Context("", {"connect": "https://kafka:8083"}, "", "alice", Password("secret")))
    with pytest.MonkeyPatch.context() as patch:
        for module in (credentials, options):
            patch.setattr(module, "context_in_use", lambda: used)
        assert credentials.credentials_for(tmp_path).user == "alice"
        assert credentials.credentials_for(tmp_path, "https://elsewhere:8083").user == ""
        assert options.address_of("connect", tmp_path) == "https://kafka:8083"
        assert options.address_of("connect", tmp_path, "https://elsewhere:8083") == "https://elsewhere:8083"
        patch.setenv("TIDEGATE_USER", "bob")
        patch.setenv("TIDEGATE_PASSWORD", "x")
        assert credentials.credentials_for(tmp_path).user == "bob"


def test_the_file_is_json_that_people_can_read(file: Path) -> None:
    tidegate("use", "prod", "--broker", "kafka:9092")
    tidegate("use", "prod", "--registry", "https://kafka:8081")
    assert json.loads(file.read_text())["contexts"]["prod"]["addresses"] == {
        "broker": "kafka:9092",
        "registry": "https://kafka:8081",
    }

"""``tidegate connectors apply DIR|diff|export|edit``: connectors as files, and what is deleted when a file goes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.platform import RunningPlatform, running_platform, tidegate
from tidegate.cli import tidegate as command_line
from tidegate.cli.connectors.files import file_of

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    with running_platform(tmp_path_factory.mktemp("files"), "--without", "events") as started:
        yield started


@pytest.fixture
def folder(platform: RunningPlatform, tmp_path: Path) -> Iterator[Path]:
    """Two connectors as files; whatever was made of them is deleted at the end."""
    made = tmp_path / "connectors"
    made.mkdir()
    for name in ("one", "two"):
        write(made, name)
    yield made
    for name in listed(platform):
        command(platform, "delete", name)


def write(folder: Path, name: str, **config: Any) -> Path:
    path = folder / f"{name}.json"
    keys = {"connector.class": SOURCE, "topic": name, "file": str(folder / "lines.txt")}
    path.write_text(json.dumps({"name": name, "config": {**keys, **config}}))
    return path


def command(
    platform: RunningPlatform, *arguments: Any, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    return tidegate("connectors", *arguments, "--data", platform.data, check=check, environment=environment)


def listed(platform: RunningPlatform) -> list[str]:
    return [connector["name"] for connector in json.loads(command(platform, "export").stdout)]


def test_a_folder_is_applied_and_only_what_came_from_it_is_pruned(platform: RunningPlatform, folder: Path) -> None:
    other = write(folder.parent, "other")
    command(platform, "apply", other)
    done = command(platform, "apply", folder, "--json")
    assert json.loads(done.stdout) == [{"name": n, "action": "created"} for n in ("one", "two")]
    (folder / "two.json").unlink()
    assert command(platform, "apply", folder).stdout == "one unchanged\n"
    assert listed(platform) == ["one", "other", "two"], "nothing is deleted unless told"
    refused = command(platform, "apply", folder, "--prune", check=False)
    assert refused.returncode == 1 and "two would be deleted: it was applied from this folder" in refused.stderr
    assert refused.stderr.endswith("error: nothing was applied: deleting two needs --yes where nobody can be asked\n")
    assert command(platform, "apply", folder, "--prune", "--yes").stdout == "one unchanged\ntwo deleted\n"
    assert listed(platform) == ["one", "other"]
    command(platform, "apply", other)  # by another hand: it is not in the record of the folder
    assert command(platform, "apply", folder, "--prune", "--yes").stdout == "one unchanged\n"


def test_an_empty_folder_is_told(platform: RunningPlatform, folder: Path) -> None:
    command(platform, "apply", folder)
    for name in ("one", "two"):
        (folder / f"{name}.json").unlink()
    assert command(platform, "apply", folder).stdout == f"{folder} has no connector files\n"
    done = command(platform, "apply", folder, "--prune", "--yes").stdout
    assert done == "one deleted\ntwo deleted\n"
    done = command(platform, "apply", folder, "--prune").stdout
    assert done == f"{folder} has no connector files, and nothing that was applied from it is left to delete\n"


def test_a_folder_is_validated(platform: RunningPlatform, folder: Path) -> None:
    assert command(platform, "validate", folder).stdout == "one: valid\ntwo: valid\n"
    write(folder, "two", **{"tasks.max": "many", "batch.szie": 7})
    strange = write(folder, "three", **{"connector.class": "org.example.FileStreamSuorceConnector"})
    failed = command(platform, "validate", folder, check=False)
    assert failed.returncode == 1
    lines = failed.stdout.splitlines()
    assert lines[:2] == ["one: valid", f"two: not valid ({folder}/two.json)"]
    assert lines[3].split()[:4] == ["tasks.max", "Invalid", "value", "many"]
    assert failed.stderr.splitlines()[0].startswith(f"{strange}: the worker has no connector class")
    assert lines[4].rstrip().split(maxsplit=1) == [
        "batch.szie",
        "nobody knows this key; is batch.size meant? (apply --force takes it)",
    ]
    write(folder, "one", **{"of.another.tool": 1})
    done = command(platform, "validate", folder / "one.json")
    assert (done.stdout, done.stderr) == ("one: valid\n", f"{folder}/one.json: nobody knows the key of.another.tool\n")
    told = json.loads(
        command(platform, "validate", folder / "one.json", folder / "two.json", "--json", check=False).stdout
    )
    assert [(entry["name"], entry["answer"]["error_count"] > 0) for entry in told] == [("one", False), ("two", True)]
    assert json.loads(command(platform, "validate", folder / "one.json", "--json").stdout)["error_count"] == 0
    assert "has no connector files" in command(platform, "validate", folder.parent, check=False).stderr


def test_a_misspelt_connector_is_answered_with_the_nearest(platform: RunningPlatform, folder: Path) -> None:
    command(platform, "apply", write(folder, "temperatures"))
    for arguments in (
        ("show",),
        ("status",),
        ("topics",),
        ("export",),
        ("edit",),
        ("pause",),
        ("restart",),
        ("delete",),
        ("offsets", "get"),
        ("logs",),
    ):
        words = ["connectors", *arguments, "temperaturs", "--data", str(platform.data)]
        failed = CliRunner().invoke(command_line, words)
        assert failed.exit_code == 1 and "did you mean temperatures?" in str(failed.exception), (arguments, failed)


def test_a_connector_that_was_changed_in_another_way_is_not_pruned(platform: RunningPlatform, folder: Path) -> None:
    command(platform, "apply", folder)
    changed = write(folder.parent, "two", **{"batch.size": "7"})
    command(platform, "apply", changed)
    (folder / "two.json").unlink()
    done = command(platform, "apply", folder, "--prune", "--yes")
    assert done.stdout == "one unchanged\n" and "two stays: it was changed in another way since" in done.stderr
    assert "two" in listed(platform)


def test_a_record_of_another_cluster_prunes_nothing(platform: RunningPlatform, folder: Path) -> None:
    command(platform, "apply", folder)
    record = folder / ".tidegate-applied.json"
    clusters = json.loads(record.read_text())["clusters"]
    record.write_text(json.dumps({"clusters": {"elsewhere": next(iter(clusters.values()))}}))
    (folder / "two.json").unlink()
    assert command(platform, "apply", folder, "--prune", "--yes").stdout == "one unchanged\n"
    record.write_text("{")
    failed = command(platform, "apply", folder, "--prune", check=False)
    assert f"error: {record} is no record of what was applied" in failed.stderr
    failed = command(platform, "apply", folder / "one.json", "--prune", check=False)
    assert failed.stderr == "error: --prune needs a folder: it deletes what was applied from one\n"


def test_diff_tells_what_apply_would_change(platform: RunningPlatform, folder: Path) -> None:
    new = command(platform, "diff", folder / "one.json", check=False)
    assert new.returncode == 1 and new.stdout.startswith(f"one: new\n  + connector.class = {SOURCE}\n")
    command(platform, "apply", folder)
    same = command(platform, "diff", folder)
    assert (same.returncode, same.stdout) == (0, "one: same\ntwo: same\n")
    write(folder, "one", **{"batch.size": 7, "producer.override.ssl.key.password": "hunter22"})
    write(folder, "two", topic="three")
    changed = command(platform, "diff", folder, check=False)
    assert changed.returncode == 1 and changed.stdout.splitlines() == [
        "one: changed",
        "  + batch.size = 7",
        "  + producer.override.ssl.key.password = [hidden]",
        "two: changed",
        "  - topic = two",
        "  + topic = three",
    ]
    told = json.loads(command(platform, "diff", folder / "two.json", "--json", check=False).stdout)
    assert told == [{"name": "two", "state": "changed", "keys": {"topic": {"from": "two", "to": "three"}}}]
    (folder / "two.json").unlink()
    write(folder, "one")
    assert command(platform, "diff", folder).stdout == "one: same\n"
    pruned = command(platform, "diff", folder, "--prune", check=False)
    assert pruned.returncode == 1 and "two: has no file any more: apply --prune deletes it" in pruned.stdout
    broken = command(platform, "diff", folder / "none.json", check=False)
    assert (broken.returncode, broken.stdout) == (1, "") and "cannot read" in broken.stderr


def test_exported_files_are_applied_again(platform: RunningPlatform, folder: Path, tmp_path: Path) -> None:
    write(folder, "one", **{"tasks.max": 1, "producer.override.ssl.key.password": "hunter22"})
    command(platform, "apply", folder)
    out = tmp_path / "out"
    done = command(platform, "export", "--output", out)
    assert done.stdout.splitlines() == [str(out / "one.json"), str(out / "two.json")]
    assert done.stderr == "one: producer.override.ssl.key.password has a secret in clear text\n"
    assert stat.S_IMODE((out / "one.json").stat().st_mode) == 0o600
    assert command(platform, "diff", out).stdout == "one: same\ntwo: same\n"
    single = json.loads(command(platform, "export", "two").stdout)
    assert single == json.loads((out / "two.json").read_text()) and next(iter(single["config"])) == "connector.class"
    (tmp_path / "all.json").write_text(command(platform, "export").stdout)
    assert command(platform, "diff", tmp_path / "all.json").stdout == "one: same\ntwo: same\n"
    failed = command(platform, "export", "nope", check=False)
    assert failed.stderr == "error: Connector nope not found\n"


def test_any_name_has_a_file_in_the_folder(tmp_path: Path) -> None:
    for name in ("../up", ".hidden", "a/b", "..", "ü b"):
        assert file_of(name, tmp_path).parent == tmp_path and not file_of(name, tmp_path).name.startswith(".")


def editor(folder: Path, *replacements: tuple[str, str]) -> str:
    """A program that replaces texts in the file that it is called with."""
    script = folder / "editor.py"
    changes = "\n".join(f"text = text.replace({old!r}, {new!r})" for old, new in replacements)
    script.write_text(
        f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n{changes}\npath.write_text(text)\n"
    )
    return f"{sys.executable} {script}"


def test_a_configuration_is_edited(platform: RunningPlatform, folder: Path, tmp_path: Path) -> None:
    command(platform, "apply", folder)
    done = command(platform, "edit", "one", EDITOR=editor(tmp_path, ('"topic": "one"', '"topic": "changed"')))
    assert done.stdout == "one updated\n" and done.stderr.endswith("  - topic = one\n  + topic = changed\n")
    assert json.loads(command(platform, "export", "one").stdout)["config"]["topic"] == "changed"
    done = command(platform, "edit", "one", EDITOR=editor(tmp_path))
    assert done.stdout == "nothing is changed\n"
    answered = command(platform, "edit", "one", "--json", EDITOR=editor(tmp_path, ('"changed"', '"again"')))
    assert json.loads(answered.stdout)["keys"] == {"topic": {"from": "changed", "to": "again"}}


@pytest.mark.parametrize(
    ("replacement", "words"),
    [
        (('"topic": "one"', '"topic": "one", "tasks.max": "many"'), "tasks.max: Invalid value many"),
        (
            ('"topic": "one"', '"topic": "one", "batch.szie": "7"'),
            "nobody knows the key batch.szie; is batch.size meant?",
        ),
        (('"topic": "one"', '"topic": '), "is not JSON"),
        (('"name": "one"', '"name": "uno"'), "the name is 'uno' now: a connector keeps its name"),
    ],
)
def test_a_refused_text_is_kept(
    platform: RunningPlatform, folder: Path, tmp_path: Path, replacement: tuple[str, str], words: str
) -> None:
    command(platform, "apply", folder)
    before = command(platform, "export", "one").stdout
    failed = command(platform, "edit", "one", check=False, EDITOR=editor(tmp_path, replacement), TMPDIR=str(tmp_path))
    assert failed.returncode == 1 and failed.stderr.startswith("error: one is not changed: ") and words in failed.stderr
    assert command(platform, "export", "one").stdout == before
    (kept,) = tmp_path.glob("tidegate-edit-*/one.json")
    assert replacement[1] in kept.read_text() and f"Your text is kept: mend {kept}" in failed.stderr
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_an_editor_that_is_not_there_is_named(platform: RunningPlatform, folder: Path) -> None:
    command(platform, "apply", folder)
    failed = command(platform, "edit", "one", check=False, EDITOR="/nowhere/ed", TMPDIR=str(folder.parent))
    assert failed.returncode == 1 and "/nowhere/ed" in failed.stderr and "one is not changed" in failed.stderr
    assert "Your text is kept" not in failed.stderr and not list(folder.parent.glob("tidegate-edit-*"))


def test_another_change_meanwhile_is_not_overwritten(platform: RunningPlatform, folder: Path, tmp_path: Path) -> None:
    command(platform, "apply", folder)
    write(tmp_path, "one", topic="theirs")
    program = editor(tmp_path, ('"topic": "one"', '"topic": "mine"'))
    script = tmp_path / "busy.sh"
    apply = f"{sys.executable} -m tidegate.cli connectors apply {tmp_path}/one.json --data {platform.data}"
    script.write_text(f"#!/bin/sh\ncd {os.getcwd()}\n{apply}\n{program} $1\n")
    script.chmod(0o755)
    failed = command(platform, "edit", "one", check=False, EDITOR=str(script), TMPDIR=str(tmp_path))
    assert "somebody else changed it meanwhile" in failed.stderr
    assert json.loads(command(platform, "export", "one").stdout)["config"]["topic"] == "theirs"

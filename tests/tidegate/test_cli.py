"""The command line: every command is there, and errors are one line."""

import importlib
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tidegate.cli import main, tidegate


def every_command():
    context = click.Context(tidegate)
    for name in tidegate.list_commands(context):
        command = tidegate.get_command(context, name)
        yield from commands_in(name, command)


def commands_in(path, command):
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands_in(f"{path} {name}", command.get_command(context, name))


def test_every_command_has_help():
    without = [path for path, command in every_command() if not (command.help or "").strip()]
    assert without == []


WITHOUT_JSON = {
    "consume": "prints JSON lines",
    "produce": "takes JSON lines and says on standard error how many",
    "events subscribe": "prints JSON lines",
    "up": "stays; `status --json` tells what runs",
    "down": "its exit status says all",
    "serve": "stays",
    "demo": "is for people",
    "examples run": "is for people; its exit status says all",
    "connectors export": "prints JSON",
    "connectors new": "writes a file for people",
    "connectors test": "is pytest",
}


def test_every_command_has_json_for_scripts():
    for path, command in every_command():
        if not isinstance(command, click.Group) and path not in WITHOUT_JSON:
            options = {name for parameter in command.params for name in parameter.opts}
            assert "--json" in options, path


def run(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "tidegate.cli", *arguments], capture_output=True, text=True, timeout=300, **more
    )


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["status", "--data", "/nowhere"], 1, "error: no tidegate is up on /nowhere"),
        (["topics", "list", "--bootstrap-servers", "127.0.0.1:1"], 1, "127.0.0.1:1"),
        (
            ["connectors", "list", "--connect", "http://127.0.0.1:1"],
            1,
            "error: no Connect worker answers at http://127.0.0.1:1",
        ),
        (
            ["serve", "broker", "/nowhere.properties"],
            1,
            "error: cannot read /nowhere.properties: No such file or directory",
        ),
        (["serve", "broker", "--set", "listeners"], 1, "error: --set 'listeners': give KEY=VALUE"),
        (
            ["serve", "broker", "--set", "num.partitions=many"],
            1,
            "Invalid value many for configuration num.partitions: Not a number of type INT",
        ),
        (["topics", "create", "x", "--config", "a"], 2, "--config 'a': give KEY=VALUE"),
        (["nonsense"], 2, "No such command 'nonsense'"),
    ],
)
def test_errors_are_told_without_a_traceback(arguments, status, words):
    done = run(*arguments)
    assert done.returncode == status
    assert words in done.stderr and "Traceback" not in done.stderr


def test_a_full_disk_behind_the_output_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tidegate.cli", "connectors", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "error: [Errno 28] No space left on device" in done.stderr


def test_a_shadowed_package_is_named(tmp_path):
    (tmp_path / "events.py").write_text("")
    done = run("status", cwd=tmp_path)
    assert done.returncode == 1
    assert f"the package 'events' of Tidegate is shadowed by {tmp_path / 'events.py'}" in done.stderr


def test_importing_tidegate_imports_nothing():
    code = "import sys; before = set(sys.modules); import tidegate; print(sorted(set(sys.modules) - before))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "['tidegate']"


@pytest.mark.parametrize("name", ["broker", "registry", "connect", "connectors", "events", "tidegate.platform"])
def test_packages_import_without_heavy_libraries(name):
    assert importlib.import_module(name)
    code = f"import sys, {name}; print([m for m in ('pyarrow', 'numpy', 'pandas', 'pyspark', 'grpc', 'sqlalchemy') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_a_connection_that_breaks_is_an_error_and_no_reader_that_has_gone(monkeypatch, capsys):
    @click.command()
    def status():
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("tidegate.cli.up.status", status)
    monkeypatch.setattr(sys, "argv", ["tidegate", "status"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: a connection was lost: [Errno 32] Broken pipe\n"

"""``tidegate connectors new|preview|test``: developing a connector without a platform."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


def run(*arguments, cwd, status=0):
    """The command line in a folder; its output, or its one line of error where it is to fail."""
    command = [sys.executable, "-m", "tidegate.cli", "connectors", *map(str, arguments)]
    environment = os.environ | {"TIDEGATE_DATA": str(cwd / "no-platform")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


LONG = (pytest.mark.proof, pytest.mark.long)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of a new source and a new sink."""
    folder = tmp_path_factory.mktemp("authoring")
    run("new", "my-feed", cwd=folder)
    run("new", "my-files", "--sink", cwd=folder)
    return folder


def test_a_new_source_can_be_previewed(made):
    seen = json.loads(
        run("preview", "my-feed.json", "-n", 3, "--registry", "http://127.0.0.1:9", "--json", cwd=made / "my-feed")
    )
    assert [record["value"] for record in seen["records"]] == [{"n": n, "square": n * n} for n in (1, 2, 3)]
    assert [(s["subject"], s["id"]) for s in seen["schemas"]] == [("my-feed-value", None)]


def test_a_preview_is_a_table_with_types(made):
    seen = run(
        "preview", "my-feed.json", "-n", 2, "--registry", "http://127.0.0.1:9", cwd=made / "my-feed"
    ).splitlines()
    assert seen[0].strip() == "my-feed: 2 rows"
    assert seen[1].split() == ["n", "int64?", "square", "int64?"]
    assert seen[3].split() == ["2", "4"]


@pytest.mark.parametrize(
    "path", ["my-feed", pytest.param("my-feed/my-feed.json", marks=LONG), pytest.param("my-files", marks=LONG)]
)
def test_a_new_connector_passes_the_suite(made, path):
    assert " passed in " in run("test", path, cwd=made)


def test_errors_are_one_line(made):
    assert run("new", "my-feed", cwd=made, status=1) == "error: my-feed is there already\n"
    assert run("new", "My_Feed", cwd=made, status=1).startswith("error: 'My_Feed' cannot name a connector: use words")
    (made / "wrong.json").write_text('{"connector.class": "NoSuch", "topic": "t"}')
    assert run("preview", "wrong.json", cwd=made, status=1).startswith("error: Failed to find any class")
    (made / "missing.json").write_text('{"connector.class": "FileStreamSource"}')
    assert run("preview", "missing.json", cwd=made, status=1).count("\n") == 1

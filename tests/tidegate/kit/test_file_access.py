"""A process that is limited to the files of a user: each test runs one, since the limit is for good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PRELUDE = """
import json, os, sqlite3, subprocess, sys
from pathlib import Path
from tidegate.kit.file_access import files_are_limited, limit_files, require_file, trusted_files
from tidegate.kit.users import Right

folder = Path(sys.argv[1])
assert not files_are_limited()
replace = limit_files("alice", [Right.parse(text) for text in json.loads(sys.argv[2])], hidden=[folder / "security"])
assert files_are_limited()

def outcome(action):
    try:
        action()
    except PermissionError as error:
        return error.strerror
    except FileNotFoundError:
        return "missing"
    return "done"

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("in", "out", "security"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
    return tmp_path


def limited(folder: Path, code: str, *rights: str, path: Path | None = None) -> Any:
    """The JSON that the code prints, in a process that alice's rights limit; FOLDER in a right is the folder."""
    named = [right.replace("FOLDER", str(folder)) for right in rights]
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-P", "-c", PRELUDE + code, str(folder), json.dumps(named)],
        capture_output=True,
        text=True,
        timeout=60,
        env={
            "PYTHONPATH": f"{ROOT}:{path}" if path else str(ROOT),
            "TMPDIR": str(scratch),
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
        },
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_files_open_as_the_rights_say(folder: Path) -> None:
    code = """
print(json.dumps([outcome(action) for action in (
    lambda: (folder / "in" / "a.txt").read_text(),
    lambda: (folder / "in" / "a.txt").write_text("b"),
    lambda: (folder / "out" / "a.txt").read_text(),
    lambda: (folder / "out" / "b.txt").write_text("b"),
    lambda: (folder / "in" / ".." / "out" / "a.txt").read_text(),
    lambda: os.listdir(folder / "in"),
    lambda: os.listdir(folder / "out"),
    lambda: (folder / "in" / "a.txt").unlink(),
    lambda: (folder / "out" / "a.txt").replace(folder / "out" / "c.txt"),
    lambda: (folder / "in" / "a.txt").rename(folder / "out" / "d.txt"),
)]))
"""
    said = limited(folder, code, "read file FOLDER/in*", "write file FOLDER/out/*")
    assert [text == "done" for text in said] == [True, False, False, True, False, True, False, False, True, False]
    assert said[1].startswith(f"alice, the owner of the connector, has no right to write file {folder}/in/a.txt")
    assert f"has no right to read file {folder}/out/a.txt" in said[2]


def test_no_right_reaches_a_hidden_folder_by_any_name(folder: Path) -> None:
    (folder / "in" / "link").symlink_to(folder / "security" / "a.txt")
    code = """
print(json.dumps([outcome(action) for action in (
    lambda: (folder / "security" / "a.txt").read_text(),
    lambda: (folder / "in" / "link").read_text(),
    lambda: open(f"/proc/self/cwd/{os.path.relpath(folder)}/security/a.txt").read(),
    lambda: os.listdir(folder / "security"),
    lambda: require_file(folder / "security" / "a.txt"),
)]))
"""
    for rights in (["manage file *"], ["admin"], ["manage file FOLDER/security/a.txt"]):
        if rights == ["manage file *"]:
            rights = ["manage file /*"]
        assert all("has no right" in text for text in limited(folder, code, *rights))


def test_code_the_system_and_scratch_files_stay_usable(folder: Path) -> None:
    code = """
import tempfile
import colorsys, sqlite3.dump  # not imported before
import pyarrow.parquet
with tempfile.NamedTemporaryFile("w") as file:
    file.write("x")
Path("/etc/hosts").read_text()
os.urandom(4), Path("/dev/null").read_text(), Path("/proc/self/status").read_text()
print(json.dumps([outcome(lambda: Path(path).read_text()) for path in (
    "/proc/self/environ", f"/proc/{os.getppid()}/environ", "/etc/passwd", str(folder / "tests.py")
)]))
"""
    (folder / "tests.py").write_text("")
    assert all("has no right" in text for text in limited(folder, code))


def test_databases_in_files_are_files(folder: Path) -> None:
    for name in ("in", "out"):
        (folder / name / "a.txt").unlink()
    code = """
print(json.dumps([outcome(action) for action in (
    lambda: sqlite3.connect(folder / "in" / "db"),
    lambda: sqlite3.connect(f"file:{folder}/in/db?mode=ro", uri=True),
    lambda: sqlite3.connect(":memory:"),
    lambda: sqlite3.connect(folder / "out" / "db").execute("CREATE TABLE t (i)"),
    lambda: sqlite3.connect(f"file:{folder}/out/d%62", uri=True),
)]))
"""
    refused, refused_by_address, *done = limited(folder, code, "write file FOLDER/out/*")
    assert "write file" in refused and "read file" in refused_by_address
    assert all(f"{folder}/in/db" in text for text in (refused, refused_by_address)) and set(done) == {"done"}


def test_only_an_admins_connector_starts_programs(folder: Path) -> None:
    code = """
print(json.dumps([outcome(lambda: subprocess.run(["true"], check=True)), outcome(lambda: os.system("true"))]))
"""
    assert limited(folder, code, "admin") == ["done", "done"]
    refused = limited(folder, code, "manage file /*")
    assert all("only the connectors of an admin may" in text for text in refused)


def test_rights_are_replaced_and_trusted_paths_are_for_one_thread(folder: Path) -> None:
    code = """
import threading
read = lambda: (folder / "in" / "a.txt").read_text()
said = [outcome(read)]
with trusted_files():
    said.append(outcome(read))
    thread = threading.Thread(target=lambda: said.append(outcome(read)))
    thread.start()
    thread.join()
said.append(outcome(read))
replace([Right.parse(f"read file {folder}/in/*")])
said.append(outcome(read))
print(json.dumps([text == "done" for text in said]))
"""
    assert limited(folder, code) == [False, True, False, False, True]


def test_duckdb_opens_no_file_without_a_right_and_reads_none_by_sql(folder: Path) -> None:
    code = """
import duckdb
from connectors.sql.duckdb_files import open_duckdb
def read_by_sql():
    connection = open_duckdb(str(folder / "out" / "db"), writing=True)
    try:
        connection.execute(f"SELECT * FROM read_text('{folder}/in/a.txt')")
    except duckdb.PermissionException as error:
        raise PermissionError(13, str(error)) from None
print(json.dumps([outcome(lambda: open_duckdb(str(folder / "in" / "db"), writing=True)), outcome(read_by_sql)]))
"""
    by_path, by_sql = limited(folder, code, "write file FOLDER/out/*")
    assert "has no right to write file" in by_path and "disabled by configuration" in by_sql


def test_openssl_and_libpq_open_no_file_without_a_right(folder: Path) -> None:
    code = """
import ssl
from connectors.sql.urls import require_libpq_files
from tidegate.kit.tls import _load_chain
context = ssl.create_default_context()
path = folder / "in" / "a.txt"
print(json.dumps([outcome(action) for action in (
    lambda: _load_chain(context, path, None, "ssl.keystore.location"),
    lambda: require_libpq_files({"sslkey": str(path)}),
    lambda: require_libpq_files({"host": "127.0.0.1,/var/run/postgresql"}),
    lambda: require_libpq_files({"host": "127.0.0.1", "sslmode": "require"}),
)]))
"""
    *refused, done = limited(folder, code)
    assert done == "done" and all("has no right to" in text for text in refused)


def test_no_right_lets_code_be_written(folder: Path) -> None:
    code = """
print(json.dumps([outcome(lambda: (folder / "out" / "evil.py").write_text("")), outcome(lambda: (folder / "in" / "b").write_text(""))]))
"""
    in_code, elsewhere = limited(folder, code, "write file FOLDER/*", path=folder / "out")
    assert "has no right to write file" in in_code and elsewhere == "done"

"""The folder in which ``tidegate up`` was called is no place of modules: whoever can write a file there does not run code by its name."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.platform import tidegate

_MODULE = """
from pathlib import Path
Path(__file__).with_name("imported").touch()
"""


def test_a_module_in_the_folder_is_not_imported_and_a_configuration_not_read(tmp_path: Path) -> None:
    """A file sink could write the module, and `module:Class` named it."""
    data = tmp_path / "data"
    (tmp_path / "left_here.py").write_text(_MODULE)
    connector = tmp_path / "connector.json"
    connector.write_text(json.dumps({"name": "c", "config": {"connector.class": "left_here:Source", "tasks.max": "1"}}))
    (tmp_path / "tidegate.toml").write_text("no TOML")
    up = tidegate(
        "up",
        "--detach",
        "--data",
        data,
        "--broker-listen",
        "127.0.0.1:0",
        "--without",
        "events",
        "--without",
        "console",
        folder=tmp_path,
    )
    assert "this folder has a tidegate.toml, which is not read" in up.stderr
    try:
        told = tidegate("connectors", "validate", connector, "--data", data, check=False, folder=Path("/"))
        assert told.returncode == 1 and "left_here" in told.stdout + told.stderr, told
    finally:
        tidegate("down", "--data", data)
    assert not (tmp_path / "imported").exists()

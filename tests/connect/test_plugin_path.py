"""Connectors from folders (``plugin.path``), restarted when their code changes; on a real worker."""

import json
import uuid

import pytest

from connect.plugins.path import ModuleGraph, hook_modules, python_folders
from connect.plugins.registry import PluginRegistry
from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker
from tidegate.kit.files import write_whole

SOURCE = """
import logging
import threading
import time
from connect.api import SourceConnector, SourceTask, config, key

@config
class Settings:
    topic: str = key("topic", doc="Topic.")

class Task(SourceTask[Settings]):
    def start(self):
        self.n = int((self.context.offset({{}}) or {{"n": 0}})["n"])
        other = threading.Thread(target=logging.getLogger("my.library").warning, args=("VERSION is {0}",))
        other.start()
        other.join()

    def poll(self):
        time.sleep(0.05)
        self.n += 1
        return rows(self, {0})

def rows(task, version):
    from connect.api import Record, RecordBatch, Schema, SchemaType
    import pyarrow as pa
    return [RecordBatch(task.config.topic, pa.array([f"{{version}}"]), Schema(SchemaType.STRING),
                        source_partition={{}}, source_offset={{"n": task.n, "version": version}})]

class Source(SourceConnector[Settings]):
    config_class, task_class = Settings, Task
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("plugins")
    (made / "mine.py").write_text(SOURCE.format(1))
    (made / "broken_hook.py").write_text("import nowhere\n\ndef register_plugins():\n    return []\n")
    return made


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory, folder):
    settings = {"plugin.path": f"/no/such/folder,{folder}", "plugin.reload": "true"}
    made = ConnectWorker(
        tmp_path_factory.mktemp("worker"), tidegate_broker.bootstrap_servers, settings, name=f"p{uuid.uuid4().hex[:8]}"
    )
    made.start()
    yield made
    made.stop()


def position(worker, name):
    offsets = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    return offsets[0]["offset"] if offsets else {"n": 0, "version": 0}


def told(worker):
    return [json.loads(line) for line in worker.process.log.read_text().splitlines() if line.startswith("{")]


def pid_of_task_hosts(worker):
    return [line["pid"] for line in told(worker) if line["event"] == "task host started"]


@pytest.mark.proof
def test_tasks_are_started_again_with_new_code_where_the_old_ones_stopped(worker, folder):
    other = {"connector.class": "org.toys.NumbersConnector", "topic": "toys", "pause.ms": "50", "total": "1000000"}
    worker.ask("POST", "/connectors", {"name": "other", "config": other}, expect=201)
    mine = {"connector.class": "mine:Source", "topic": "mine", "value.converter": "StringConverter"}
    assert worker.ask("POST", "/connectors", {"name": "mine", "config": mine}, expect=201)["type"] == "source"
    wait_until(lambda: position(worker, "mine")["n"] > 2, "rows of the first code")
    before, at = len(pid_of_task_hosts(worker)), position(worker, "mine")["n"]

    # At once: a file that is cut to nothing before it is written is two changes, and the code would be loaded for each.
    write_whole(folder / "mine.py", SOURCE.format(2))
    wait_until(lambda: position(worker, "mine")["version"] == 2, "rows of the second code")
    assert position(worker, "mine")["n"] > at  # went on, did not begin again
    assert len(pid_of_task_hosts(worker)) > before

    write_whole(folder / "mine.py", "def broken(:\n")
    wait_until(lambda: any("cannot be read" in line["event"] for line in told(worker)), "unreadable code")
    (said,) = [line for line in told(worker) if "cannot be read" in line["event"]]
    assert said["connectors"] == ["mine"] and "mine.py: SyntaxError" in said["error"] and "line 1" in said["error"]
    at = position(worker, "mine")["n"]
    wait_until(lambda: position(worker, "mine")["n"] > at, "rows of the second code, still")
    assert position(worker, "mine")["version"] == 2

    write_whole(folder / "mine.py", "import nowhere\n")
    # The task, too: its process starts apart from the connector's, and could import the code that is repaired below.
    worker.wait_for("mine", connector="FAILED", task0="FAILED")
    trace = worker.ask("GET", "/connectors/mine/status")["connector"]["trace"]
    assert "mine:Source" in trace and "No module named 'nowhere'" in trace
    assert worker.state("other") == {"connector": "RUNNING", 0: "RUNNING"}

    write_whole(folder / "mine.py", SOURCE.format(3))
    wait_until(lambda: position(worker, "mine")["version"] == 3, "repaired code")
    worker.wait_for("mine", connector="RUNNING", task0="RUNNING")

    lines = told(worker)
    said = [line for line in lines if str(line["event"]).startswith("VERSION")]
    assert [line["event"] for line in said] == ["VERSION is 1", "VERSION is 2", "VERSION is 3"]
    assert all((line["connector"], line["task"], line["logger"]) == ("mine", 0, "my.library") for line in said)
    left = [line["event"] for line in lines if line.get("module") == "broken_hook"]
    assert left and all("plugins left out" in event for event in left)
    restarted = {name for line in lines if "started again" in str(line["event"]) for name in line["connectors"]}
    assert restarted == {"mine"}


def test_folders_are_searched_without_running_anything(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("def register_plugins(): return []\nraise SystemExit")
    (tmp_path / "single.py").write_text("raise SystemExit")
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "connector.jar").write_bytes(b"PK")
    folders = python_folders([str(tmp_path), str(tmp_path / "jars"), "/no/such/folder"])
    assert folders == [tmp_path]
    assert hook_modules(folders) == ["package"]


def test_a_connector_needs_the_modules_that_its_own_import(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from . import part\n")
    (tmp_path / "package" / "part.py").write_text("def later():\n    import tools.text\n")
    (tmp_path / "tools.py").write_text("import json, package\n")
    (tmp_path / "broken.py").write_text("import tools\ndef (")
    (tmp_path / "apart.py").write_text("")
    modules, plugins = ModuleGraph([tmp_path]), PluginRegistry([])
    assert modules.needed({"connector.class": "package:Source"}, plugins) >= {"package", "tools"}
    assert modules.needed({"transforms.a.type": "apart:Transform", "topic": "tools"}, plugins) == {"apart"}
    assert modules.broken.keys() == {"broken"} and "line 2" in modules.broken["broken"]
    files = [str(tmp_path / "package" / "part.py"), str(tmp_path / "gone.py"), "/elsewhere/tools.py"]
    assert modules.of_files(files) == {"package", "gone"}

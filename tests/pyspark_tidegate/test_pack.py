"""``tidegate spark pack``: executors with a bare Python read and write topics from the archive alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from tests.pyspark_tidegate.driver import ROOT, Driver
from tests.pyspark_tidegate.test_reading import FLIGHT, Topic
from tests.pyspark_tidegate.test_writing import decoder, messages
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

# Confluent's registry client leaves its connection to the garbage collector.
pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def pack(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidegate.cli", "spark", "pack", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.long
def test_executors_with_nothing_else_read_and_write_by_the_archive(
    broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    archive = folder / "tidegate.tar.gz"
    made = pack(str(archive), "--json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert (told["platform"], told["bytes"]) == (sysconfig.get_platform(), archive.stat().st_size)
    assert {"pyarrow", "aiokafka", "tidegate"} <= set(told["distributions"])
    assert "pyspark" not in told["distributions"]

    bare = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True, timeout=120)
    python = bare / "bin" / "python"
    assert subprocess.run([str(python), "-c", "import pyarrow"], capture_output=True, check=False).returncode == 1
    topic, copy = Topic(broker, registry), Topic(broker, registry)
    topic.write(FLIGHT, [{"id": n, "month": n} for n in range(10)])
    sink = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "schema.registry.url": registry.url,
        "topic": copy.name,
    }
    conf = {"spark.archives": f"{archive}#tidegate", "spark.executorEnv.PYTHONPATH": "tidegate"}
    driver = Driver(
        folder, "copy_and_tell", "local-cluster[1,1,1024]", source=topic.options(), sink=sink, conf=conf, python=str(python),
        # The driver has all that is installed here; executors only get what their configuration says.
        environment={"PYTHONPATH": os.pathsep.join((str(ROOT), sysconfig.get_path("platlib")))},
    )  # fmt: skip
    try:
        assert driver.ended() == 0, driver.log[-3000:]
    finally:
        if driver.process.poll() is None:
            driver.kill()
    decode = decoder(copy)
    assert sorted(decode(message.value())["id"] for message in messages(copy)) == list(range(10))
    origins = json.loads((folder / "origins.json").read_text())
    assert origins and all(f"{os.sep}tidegate{os.sep}" in origin and str(ROOT) not in origin for origin in origins)


def test_the_file_must_have_a_name_that_spark_unpacks(folder: Path) -> None:
    refused = pack(str(folder / "tidegate.zip"))
    assert refused.returncode == 1
    assert "Spark unpacks .tar.gz and .tgz" in refused.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_the_archive_has_no_caches_and_replaces_an_older_one_when_it_is_whole(folder: Path) -> None:
    archive = folder / "tidegate.tgz"
    archive.write_bytes(b"older")
    made = pack(str(archive))
    assert made.returncode == 0, made.stderr
    assert f"spark.archives={archive}#tidegate" in made.stdout
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    assert {"pyspark_tidegate/__init__.py", "broker/client/__init__.py", "pyarrow/__init__.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.startswith(("pyspark/", "/", ".."))]
    assert [path.name for path in folder.iterdir()] == ["tidegate.tgz"]

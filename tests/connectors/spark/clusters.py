"""Jobs for executors that have nothing of ours but what ``tidegate spark pack`` makes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from connectors.spark.client import SparkDriver
from connectors.spark.job import Job
from tests.servers.java import QUICK

__all__ = ["executors", "pack", "run_and_kill_an_executor"]


def pack(folder: Path) -> Mapping[str, str]:
    """The settings of executors that have nothing but the archive, and a Python without packages."""
    archive, bare = folder / "tidegate.tar.gz", folder / "bare"
    command = [sys.executable, "-m", "tidegate.cli", "spark", "pack", str(archive)]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    return {
        "spark.archives": f"{archive}#tidegate",
        "spark.executorEnv.PYTHONPATH": "tidegate",
        "spark.pyspark.python": str(bare / "bin" / "python"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join(QUICK),
    }


def run_and_kill_an_executor(driver: SparkDriver, job: Job, below: Callable[[], list[int]]) -> Mapping[str, Any]:
    """Executors are children of the processes ``below``. One gets SIGKILL when the first tasks are done and others run on it."""
    killed = list[int]()

    def look(said: Mapping[str, Any]) -> None:
        if not killed and said["unit"] == "tasks" and said["total"] and said["done"]:
            executor = executors(below())[0]
            executor.kill()
            killed.append(executor.pid)

    done = driver.run(job, look)
    assert killed, "no task was done while others ran"
    return done


def executors(parents: list[int]) -> list[psutil.Process]:
    """Those below these processes."""
    children = (child for pid in parents for child in psutil.Process(pid).children(recursive=True))
    return [child for child in children if _is_executor(child)]


def _is_executor(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        command = process.cmdline()
        return "java" in process.name() and any(part.endswith("CoarseGrainedExecutorBackend") for part in command)
    return False

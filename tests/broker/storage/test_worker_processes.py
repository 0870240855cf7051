"""Processes that a broker starts for long work end with it, even if it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.servers.process import wait_until

PROGRAM = """
import os, time
from broker.storage.cleaner import own_process

if __name__ == "__main__":
    executor = own_process()
    print(executor.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""


def test_a_worker_ends_when_its_broker_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        worker = psutil.Process(int(broker.stdout.readline()))
        os.kill(broker.pid, signal.SIGKILL)
    wait_until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE, "the end of the worker")

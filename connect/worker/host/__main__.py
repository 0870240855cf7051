"""The entry of a task-host process: ``python -m connect.worker.host SOCKET STACKS`` (two file descriptors), started by a worker and by nobody else."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys

from connect.worker.host.host import TaskHost
from connect.worker.host.imports import import_one_at_a_time
from tidegate.kit import logs


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to all; the worker tells us what to do
        signal.signal(number, signal.SIG_IGN)
    # The worker asks a host that does not answer for its stacks: this works while no Python code can run.
    faulthandler.register(signal.SIGUSR2, int(sys.argv[2]), all_threads=True)
    logs.configure(os.environ.get("TIDEGATE_LOG_LEVEL", "INFO"))
    logs.threads_inherit()
    import_one_at_a_time()
    TaskHost(socket.socket(fileno=int(sys.argv[1]))).serve()
    # The worker is gone. Its successor starts the same tasks again, so these must end now.
    os._exit(0)


main()

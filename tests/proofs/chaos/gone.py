"""``python -m tests.proofs.chaos.gone``, in namespaces of its own: the host of a database is gone in the middle of a query,
and the host of a worker in the middle of a transaction.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from connect.api import RetriableConnectError
from connectors.jdbc.drivers import open_reader
from connectors.jdbc.writers import open_writer
from connectors.jdbc.writers.writer import Writer
from connectors.sql.urls import parse_jdbc_url
from connectors.sql.write_dialects import write_dialect
from tests.proofs.chaos.scene import Database
from tests.support.hosts import Network

MOST_S = 60
LOCKED = "UPDATE positions SET epoch = epoch + 1"
WRITER = f"""
import sys, time
from tests.proofs.chaos.gone import writer
made = writer(sys.argv[1])
made.run({LOCKED!r})
print("locked", flush=True)
time.sleep(600)
"""


def writer(url: str) -> Writer:
    database = parse_jdbc_url(url)
    return open_writer(database, write_dialect(database.kind))


def main() -> None:
    network = Network()
    host = network.host("database")
    database = Database(host)
    database.start()
    try:
        with closing(open_reader(parse_jdbc_url(database.far_url))) as reader:
            began = time.monotonic()
            assert reader.value("SELECT 1") == 1
            threading.Timer(1, host.cut).start()  # while the server works on the answer
            with pytest.raises(RetriableConnectError):
                reader.value("SELECT pg_sleep(300)")
        took = time.monotonic() - began
        print(f"{took:.0f} s")
        assert took < MOST_S
        host.join()
        _lock_of_a_host_that_is_gone(network, database)
    finally:
        host.join()
        database.stop()


def _lock_of_a_host_that_is_gone(network: Network, database: Database) -> None:
    gone = network.host("worker")
    with database.connect() as connection:
        connection.execute("CREATE TABLE positions (epoch integer)")
        connection.execute("INSERT INTO positions VALUES (1)")
    command = gone.inside([sys.executable, "-c", WRITER, database.far_url])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        gone.cut()
        began = time.monotonic()
        with closing(writer(database.far_url)) as successor:
            successor.run(LOCKED)
            successor.commit()
        took = time.monotonic() - began
        process.kill()
    print(f"{took:.0f} s for the lock")
    assert 5 < took < MOST_S


if __name__ == "__main__":
    main()

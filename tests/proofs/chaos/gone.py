"""``python -m tests.proofs.chaos.gone``, in namespaces of its own: the host of a database is gone in the middle of a query."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

from connect.api import RetriableConnectError
from connectors.jdbc.drivers import open_reader
from connectors.sql.urls import parse_jdbc_url
from tests.proofs.chaos.scene import Database
from tests.support.hosts import Network

MOST_S = 60


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
    finally:
        host.join()
        database.stop()


if __name__ == "__main__":
    main()

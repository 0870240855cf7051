"""The JDBC sink under kill -9: task hosts, the worker, PostgreSQL and the broker die at random while rows are written.

With its offsets in the database every record is one row, though ``insert.mode=insert`` would gladly write it again.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from tests.proofs import effort, seeds
from tests.proofs.sink_kills import Rows, killing, run
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS = seeds(1, 20)
STRIKES, ROWS = effort(3, 20), effort(9_000, 200_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_one_row(seed: int, tmp_path: Path) -> None:
    database = PostgresServer()

    def kill_backends(_: random.Random) -> None:
        with contextlib.suppress(psycopg.Error), database.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    def rows() -> Rows:
        with database.connect() as connection:
            return Counter(connection.execute("SELECT id, n FROM rows").fetchall())

    database.start()
    try:
        config = {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "connection.url": database.jdbc_url,
            "auto.create": "true",
            "tidegate.offsets.table": "sink_offsets",
            "max.retries": "100",
            "retry.backoff.ms": "200",
            "connection.backoff.ms": "200",
        }
        parties = {"database": killing(database), "backends": kill_backends}
        run(seed, tmp_path, config, parties, rows, strikes=STRIKES, rows=ROWS)
    finally:
        database.stop()

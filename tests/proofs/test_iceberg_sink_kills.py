"""The Iceberg sink under kill -9: task hosts, the worker, catalog, S3 and the broker die at random while rows are written by two tasks.

Appended to a table of a REST catalog every record is one row. In a table with files in S3, changed by key, every key has its last
value. Small files are put together meanwhile.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.proofs import drawn_seed, effort
from tests.proofs.sink_kills import Rows, changed, killing, run
from tests.servers.iceberg import IcebergRestServer
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.iceberg import iceberg_rows, local_catalog

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS, STRIKES, ROWS = effort(1, 50), effort(3, 15), effort(6_000, 60_000)
_SINK = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "iceberg.tables": "proof.rows",
    "iceberg.tables.auto-create-enabled": "true",
    "iceberg.control.commit.interval-ms": "200",
    "tidegate.compact.interval.ms": "1000",
}


def rows(config: dict[str, str]) -> Rows:
    made = iceberg_rows(config, "proof.rows", "id", "n").to_pylist()
    return Counter((each["id"], each["n"]) for each in made)


@pytest.mark.long
@pytest.mark.parametrize("number", range(SEEDS))
def test_every_record_is_one_row(number: int, tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    server = IcebergRestServer(tmp_path / "catalog")
    server.start()
    config = _SINK | server.catalog
    try:
        parties = {"catalog": killing(server)}
        run(drawn_seed() + number, tmp_path, config, parties, lambda: rows(config), strikes=STRIKES, rows=ROWS)
    finally:
        server.stop()


@pytest.mark.long  # the sink of Delta has the short form
@pytest.mark.parametrize("number", range(SEEDS))
def test_every_key_has_its_last_value(number: int, tmp_path: Path) -> None:
    server = S3Server(tmp_path / "s3")
    server.start()
    try:
        with bucket_on(server) as bucket:
            config = {
                **_SINK,
                **local_catalog(tmp_path),
                "iceberg.catalog.warehouse": f"s3://{bucket.name}/warehouse",
                "iceberg.catalog.s3.endpoint": server.endpoint_url,
                "iceberg.catalog.s3.access-key-id": server.access_key,
                "iceberg.catalog.s3.secret-access-key": server.secret_key,
                "iceberg.catalog.s3.region": server.region,
                "iceberg.tables.upsert-mode-enabled": "true",
                "iceberg.tables.default-id-columns": "id",
            }
            run(
                drawn_seed() + number,
                tmp_path,
                config,
                {"S3": killing(server)},
                lambda: rows(config),
                strikes=STRIKES,
                rows=ROWS,
                record=changed,
            )
    finally:
        server.stop()

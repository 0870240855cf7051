"""The Iceberg sink under kill -9: task hosts, the worker, catalog, S3 and the broker die at random while rows are written by two tasks.
Catalog and S3 answer with errors, slowly or not at all for a while, or the disk is full.

Appended to a table of a REST catalog every record is one row. In a table with files in S3, changed by key, every key has its last
value. Small files are put together meanwhile.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.proofs import effort, seeds
from tests.proofs.sink_kills import Rows, changed, filling, killing, run, run_apart
from tests.servers.iceberg import IcebergRestServer
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.gateway import gateway
from tests.support.iceberg import iceberg_rows, local_catalog

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS = seeds(1, 50)
STRIKES, ROWS = effort(3, 15), effort(6_000, 60_000)
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
@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_one_row(seed: int, tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    server = IcebergRestServer(tmp_path / "catalog")
    server.start()
    table = _SINK | server.catalog
    try:
        with gateway(server.port) as front:
            config = table | {"iceberg.catalog.uri": f"http://{front.address}"}
            parties = {"catalog": killing(server), "trouble of the catalog": front.trouble}
            run(seed, tmp_path, config, parties, lambda: rows(table), strikes=STRIKES, rows=ROWS)
    finally:
        server.stop()


@pytest.mark.long  # the sink of Delta has the short form
@pytest.mark.parametrize("seed", SEEDS)
def test_every_key_has_its_last_value(seed: int, tmp_path: Path) -> None:
    server = S3Server(tmp_path / "s3")
    server.start()
    try:
        with bucket_on(server) as bucket, gateway(server.port) as front:
            table = {
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
                seed,
                tmp_path,
                table | {"iceberg.catalog.s3.endpoint": f"http://{front.address}"},
                {"S3": killing(server), "trouble of S3": front.trouble},
                lambda: rows(table),
                strikes=STRIKES,
                rows=ROWS,
                record=changed,
            )
    finally:
        server.stop()


def on_a_small_disk(seed: int, folder: Path) -> None:
    disk = folder / "disk"
    parties = {"full disk": filling(disk)}
    config = _SINK | local_catalog(disk)
    run(seed, folder, config, parties, lambda: rows(config), strikes=STRIKES, rows=ROWS)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_one_row_on_a_disk_that_is_full_at_times(seed: int, tmp_path: Path) -> None:
    run_apart(on_a_small_disk, seed, tmp_path)

"""The Delta sink under kill -9: task hosts, the worker, S3 and the broker die at random while rows are written by two tasks.
S3 answers with errors, slowly or not at all for a while.

In a table in S3, changed by key, every key has its last value; in the long form rows are appended to a table on a disk too, which
is full at times. Small files are put together meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.proofs import effort, seeds
from tests.proofs.sink_kills import Rows, changed, filling, killing, run, run_apart
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.delta import delta_rows, local_warehouse
from tests.support.gateway import gateway

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS = seeds(1, 50)
STRIKES, ROWS = effort(3, 15), effort(6_000, 60_000)
_SINK = {
    "connector.class": "tidegate.delta.DeltaSinkConnector",
    "delta.tables": "proof.rows",
    "delta.tables.auto-create-enabled": "true",
    "delta.commit.interval-ms": "200",
    "tidegate.compact.interval.ms": "1000",
}


def rows(config: Mapping[str, str]) -> Rows:
    made = delta_rows(config, "proof.rows", "id", "n").to_pylist()
    return Counter((each["id"], each["n"]) for each in made)


def on_a_small_disk(seed: int, folder: Path) -> None:
    disk = folder / "disk"
    parties = {"full disk": filling(disk)}
    config = _SINK | local_warehouse(disk)
    run(seed, folder, config, parties, lambda: rows(config), strikes=STRIKES, rows=ROWS)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_one_row_on_a_disk_that_is_full_at_times(seed: int, tmp_path: Path) -> None:
    run_apart(on_a_small_disk, seed, tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_key_has_its_last_value(seed: int, tmp_path: Path) -> None:
    server = S3Server(tmp_path / "s3")
    server.start()
    try:
        with bucket_on(server) as bucket, gateway(server.port) as front:
            table = {
                **_SINK,
                "delta.warehouse": f"s3://{bucket.name}/lake",
                "delta.storage.aws_endpoint_url": server.endpoint_url,
                "delta.storage.aws_access_key_id": server.access_key,
                "delta.storage.aws_secret_access_key": server.secret_key,
                "delta.storage.aws_region": server.region,
                "delta.tables.upsert-mode-enabled": "true",
                "delta.tables.default-id-columns": "id",
            }
            run(
                seed,
                tmp_path,
                table | {"delta.storage.aws_endpoint_url": f"http://{front.address}"},
                {"S3": killing(server), "trouble of S3": front.trouble},
                lambda: rows(table),
                strikes=STRIKES,
                rows=ROWS,
                record=changed,
            )
    finally:
        server.stop()

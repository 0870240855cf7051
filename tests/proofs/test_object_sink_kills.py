"""Sinks to object stores under kill -9: task hosts, the worker, the store and the broker die at random while two tasks write files.
The store answers with errors, slowly or not at all for a while, or the disk is full.

In the end every record is in one file, once, in S3, in Azure and on the disk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.proofs import effort, seeds
from tests.proofs.sink_kills import Rows, filling, killing, run, run_apart
from tests.servers.azure import AzureServer
from tests.servers.fixtures import or_skip
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.gateway import gateway
from tests.support.objects import files_below

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS = seeds(1, 50)
STRIKES, ROWS = effort(3, 15), effort(6_000, 60_000)
_SINK = {"format.class": "JsonFormat", "flush.size": "100", "rotate.interval.ms": "-1"}


def rows(files: Iterable[bytes]) -> Rows:
    lines = (json.loads(line) for file in files for line in file.splitlines())
    return Counter((each["id"], each["n"]) for each in lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_in_one_file_of_s3(seed: int, tmp_path: Path) -> None:
    server = S3Server(tmp_path / "s3")
    server.start()
    try:
        with bucket_on(server) as bucket, gateway(server.port) as front:
            config = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", **_SINK, **bucket.access}
            config["store.url"] = f"http://{front.address}"
            parties = {"S3": killing(server), "trouble of S3": front.trouble}
            run(
                seed,
                tmp_path,
                config,
                parties,
                lambda: rows(bucket.objects().values()),
                strikes=STRIKES,
                rows=ROWS,
            )
    finally:
        server.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_in_one_blob_of_azure(seed: int, tmp_path: Path) -> None:
    server = or_skip(lambda: AzureServer(tmp_path / "azure"))
    server.start()
    try:
        server.create_container("proof")
        with gateway(server.port) as front:
            config = {
                "connector.class": "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",
                **_SINK,
                "azblob.account.name": server.account,
                "azblob.account.key": server.key,
                "azblob.container.name": "proof",
                "store.url": f"http://{front.address}/{server.account}",
            }
            run(
                seed,
                tmp_path,
                config,
                # Azurite keeps the names of its blobs in memory for seconds: a killed one has lost what it confirmed.
                {"trouble of Azure": front.trouble},
                lambda: rows(server.blobs("proof").values()),
                strikes=STRIKES,
                rows=ROWS,
            )
    finally:
        server.stop()


def on_a_small_disk(seed: int, folder: Path) -> None:
    disk = folder / "disk"
    parties = {"full disk": filling(disk)}
    config = {"connector.class": "tidegate.local.LocalSinkConnector", **_SINK, "store.url": f"file://{disk}"}

    def there() -> Rows:
        return rows((disk / name).read_bytes() for name in files_below(disk) if "rows+" in name)

    run(seed, folder, config, parties, there, strikes=STRIKES, rows=ROWS)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_in_one_file_of_a_disk_that_is_full_at_times(seed: int, tmp_path: Path) -> None:
    run_apart(on_a_small_disk, seed, tmp_path)

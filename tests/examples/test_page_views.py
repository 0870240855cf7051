"""The lake of page views in HDFS and in S3: both have every view, and the batch layer reads HDFS."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from pyarrow.dataset import dataset
from pyarrow.fs import S3FileSystem

from tests.servers.hdfs import HdfsServer
from tests.servers.s3 import S3Server
from tests.support.pages import ROOT
from tests.support.platform import running_platform, tidegate, until

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long]  # HDFS and Spark start


def test_the_lake_may_be_in_hdfs_and_s3(tmp_path: Path, hdfs_server: HdfsServer, s3_server: S3Server):
    folder = tmp_path / "page-views"
    shutil.copytree(ROOT / "examples" / "page-views", folder)
    subprocess.run([sys.executable, "make_views.py", "1"], cwd=folder, check=True)
    s3 = S3FileSystem(
        access_key=s3_server.access_key,
        secret_key=s3_server.secret_key,
        endpoint_override=s3_server.endpoint_url,
        region=s3_server.region,
        allow_bucket_creation=True,
    )
    s3.create_dir("lake")
    with running_platform(tmp_path, "--without", "events") as platform:
        at = ("--data", platform.data)
        tidegate("topics", "create", "views", "--partitions", "3", *at)
        tidegate("schemas", "register", "views-value", folder / "view.avsc", *at)
        tidegate("produce", "views", folder / "app-1.jsonl", "--subject", "views-value", *at)
        for file, changed in (
            ("lake-hdfs.json", {"hdfs.url": hdfs_server.url}),
            (
                "lake-s3.json",
                {
                    "store.url": s3_server.endpoint_url,
                    "aws.access.key.id": s3_server.access_key,
                    "aws.secret.access.key": s3_server.secret_key,
                },
            ),
        ):
            connector = json.loads((folder / file).read_text())
            connector["config"] |= {"rotate.schedule.interval.ms": "1000"} | changed
            (folder / file).write_text(json.dumps(connector))
            tidegate("connectors", "apply", folder / file, *at)

        def all_committed(store: str) -> bool:
            done = tidegate("groups", "describe", f"connect-lake-{store}", "--json", *at, check=False)
            return not done.returncode and [p["lag"] for p in json.loads(done.stdout)["offsets"]] == [0] * 3

        for store in ("hdfs", "s3"):
            until(lambda store=store: all_committed(store), f"all views in {store}")
    columns = ["site", "page", "visitor", "at"]
    rows = dataset("lake/views", filesystem=s3, format="parquet").to_table(columns=columns).to_pylist()
    in_s3 = sorted((row["site"], row["page"], row["visitor"], str(row["at"])[:19]) for row in rows)
    raw = [json.loads(line) for line in (folder / "app-1.jsonl").read_text().splitlines()]
    assert in_s3 == sorted((row["site"], row["page"], row["visitor"], row["at"][:19]) for row in raw)
    batch = [sys.executable, "batch.py", f"{hdfs_server.url}/lake/views"]
    said = subprocess.run(batch, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert said == "3,000 views in the lake\n"
    hours = """SELECT site, {} AS hour, {} AS views, {} AS visitors FROM '{}' GROUP BY ALL ORDER BY ALL"""
    calculated = hours.format("epoch_ms(hour)", "any_value(views)", "any_value(visitors)", f"{folder}/batch/*.parquet")
    expected = hours.format(
        """epoch_ms(date_trunc('hour', "at"::TIMESTAMPTZ))""",
        "count(*)",
        "count(DISTINCT visitor)",
        f"{folder}/app-1.jsonl",
    )
    assert duckdb.sql(calculated).fetchall() == duckdb.sql(expected).fetchall()

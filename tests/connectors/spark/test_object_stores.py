"""Tables and files on S3, and tables in catalogs with a server or a database, in one session of real Spark."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog

from connectors.spark.client import SparkDriver
from connectors.spark.jars import PACKAGES, fetch_jars, packages_for
from connectors.spark.java import find_java
from connectors.spark.job import Input, Merge
from tests.connectors.spark.test_loads import Source
from tests.servers.fetch import require
from tests.servers.iceberg import IcebergRestServer
from tests.servers.s3 import S3Server
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.buckets import Bucket, bucket_on
from tests.support.spark import fill, lake_conf, make_job, produce

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long, pytest.mark.timeout(600)]

FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
ICEBERG_AWS = (("org.apache.iceberg", "iceberg-aws", "1.10.1"), ("dev.failsafe", "failsafe", "3.3.2"))
"""S3FileIO for the server, which is of this version; Spark has it in Iceberg's runtime."""


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    with bucket_on(s3_server) as bucket:
        yield bucket


@pytest.fixture(scope="module")
def file_io(s3_server: S3Server) -> Mapping[str, str]:
    return {
        "io-impl": FILE_IO,
        "s3.endpoint": s3_server.endpoint_url,
        "s3.path-style-access": "true",
        "s3.access-key-id": s3_server.access_key,
        "s3.secret-access-key": s3_server.secret_key,
        "client.region": s3_server.region,
    }


@pytest.fixture(scope="module")
def catalog(
    bucket: Bucket, file_io: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergRestServer]:
    """A REST catalog with its warehouse on S3."""
    folder = tmp_path_factory.mktemp("rest")
    needed = [*ICEBERG_AWS, *packages_for("", {"io-impl": FILE_IO})]
    jars = fetch_jars(find_java(folder), folder, needed)
    server = IcebergRestServer(folder, settings={"warehouse": f"s3://{bucket.name}/rest", **file_io}, jars=jars)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def conf(
    catalog: IcebergRestServer, bucket: Bucket, file_io: Mapping[str, str], s3_server: S3Server, warehouse: Path
) -> dict[str, str]:
    """One session for all of them, with what the docs name."""
    catalogs = {
        "rest": {"type": "rest", "uri": catalog.url, **file_io},
        "sqlite": {"type": "jdbc", "uri": f"jdbc:sqlite:{warehouse}/catalog.db", "jdbc.schema-version": "V1", "warehouse": f"s3://{bucket.name}/jdbc", **file_io},
    }  # fmt: skip
    s3a = {
        "endpoint": s3_server.endpoint_url,
        "endpoint.region": s3_server.region,
        "path.style.access": "true",
        "access.key": s3_server.access_key,
        "secret.key": s3_server.secret_key,
    }
    return (
        lake_conf(warehouse)
        | {f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog" for name in catalogs}
        | {f"spark.sql.catalog.{name}.{key}": value for name, given in catalogs.items() for key, value in given.items()}
        | {f"spark.sql.catalog.{name}.cache-enabled": "false" for name in catalogs}
        | {f"spark.hadoop.fs.s3a.{key}": value for key, value in s3a.items()}
    )


@pytest.fixture(scope="module")
def driver(conf: Mapping[str, str]) -> Iterator[SparkDriver]:
    packages = [*PACKAGES["avro"], *PACKAGES["iceberg"], *PACKAGES["delta"], *packages_for("", conf)]
    driver = SparkDriver(stopping=threading.Event(), idle_s=60, packages=packages)
    yield driver
    driver.close()


@pytest.fixture
def load(
    driver: SparkDriver, tidegate_broker: TidegateBroker, conf: Mapping[str, str]
) -> Callable[..., Mapping[str, Any]]:
    """Runs a job that merges two rows, and one that changes one of them and adds another."""
    (sqlite,) = require("iceberg-rest").glob("libs/sqlite-jdbc-*.jar")

    def loaded(format_: str, **target: str) -> None:
        bootstrap, topic = tidegate_broker.bootstrap_servers, f"stores_{uuid.uuid4().hex[:6]}"
        batches = [[(1, "a"), (2, "b")], [(2, "B"), (3, "c")]]
        for number, rows in enumerate(batches):
            values = [json.dumps({"id": key, "name": name}) for key, name in rows]
            if number:
                produce(bootstrap, topic, [(0, None, value) for value in values])
            else:
                fill(bootstrap, topic, values, 1)
            input_ = Input(
                topic, {"0": 2 * number}, {"0": 2 * number + 2}, "json", "id BIGINT, name STRING", topic_id="an id"
            )
            given = {
                "path": "",
                "conf": conf,
                "connector": topic,
                "run_id": uuid.uuid4().hex[:16],
                "jars": [str(sqlite)],
            }
            more = {"format": format_, "mode": "merge", "merge": Merge(["id"]), **target}
            driver.run(make_job(bootstrap, [input_], **(given | more)), lambda said: None)

    return loaded


MERGED = [(1, "a"), (2, "B"), (3, "c")]


def test_iceberg_by_a_rest_catalog_with_its_files_on_s3(
    load: Any, catalog: IcebergRestServer, file_io: Mapping[str, str], bucket: Bucket
) -> None:
    load("iceberg", table="rest.db.shops")
    table = load_catalog("rest", **{"type": "rest", "uri": catalog.url, **_of_pyiceberg(file_io)}).load_table(
        "db.shops"
    )
    assert rows_of(table.scan().to_arrow()) == MERGED
    assert any(name.startswith("rest/db/shops/data/") for name in bucket.objects())


def test_iceberg_by_a_jdbc_catalog_with_its_files_on_s3(
    load: Any, file_io: Mapping[str, str], bucket: Bucket, warehouse: Path
) -> None:
    load("iceberg", table="sqlite.db.shops")
    given = {"type": "sql", "uri": f"sqlite:///{warehouse}/catalog.db", **_of_pyiceberg(file_io)}
    assert rows_of(load_catalog("sqlite", **given).load_table("db.shops").scan().to_arrow()) == MERGED
    assert any(name.startswith("jdbc/db/shops/data/") for name in bucket.objects())


def test_delta_and_files_on_s3_are_written_and_loaded_again(
    load: Any, driver: SparkDriver, tidegate_broker: TidegateBroker, conf: dict[str, str], bucket: Bucket
) -> None:
    path = f"s3a://{bucket.name}/delta/shops"
    load("delta", path=path)
    source = Source(driver, tidegate_broker.bootstrap_servers, conf, format="delta", path=path)
    source.run()
    assert rows_of(source.new()) == MERGED
    pq.write_table(pa.table({"id": [7], "name": ["x"]}), made := pa.BufferOutputStream())
    bucket.put("files/a.parquet", made.getvalue().to_pybytes())
    source = Source(
        driver, tidegate_broker.bootstrap_servers, conf, format="parquet", path=f"s3a://{bucket.name}/files"
    )
    source.run()
    assert rows_of(source.new()) == [(7, "x")]
    assert source.run()["position"] is None


def _of_pyiceberg(file_io: Mapping[str, str]) -> dict[str, str]:
    return {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"} | {
        name.replace("client.region", "s3.region"): value for name, value in file_io.items() if name != "io-impl"
    }


def rows_of(rows: pa.Table | Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    given = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted((row["id"], row["name"]) for row in given)


@pytest.mark.parametrize("format_", ["avro", "orc"])
def test_files_of_avro_and_orc_are_loaded(
    driver: SparkDriver, tidegate_broker: TidegateBroker, conf: dict[str, str], tmp_path: Path, format_: str
) -> None:
    rows = [{"id": n, "name": str(n)} for n in range(10)]
    if format_ == "orc":
        pyarrow.orc.write_table(pa.Table.from_pylist(rows), tmp_path / "a.orc")
    else:
        import fastavro

        fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
        with (tmp_path / "a.avro").open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "Shop", "fields": fields}, rows)
    source = Source(driver, tidegate_broker.bootstrap_servers, conf, format=format_, path=str(tmp_path))
    source.run()
    assert source.new() == rows

"""Results of queries and functions into topics, and jobs that are streams, in one session of real Spark."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset as ds
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from connect.api import ConnectError
from connectors.spark.client import Cancelled, SparkDriver
from connectors.spark.jars import PACKAGES
from connectors.spark.job import Input, Job, Stream, TopicOutput
from registry.client import RegistryClient
from tests.proofs import drawn_seed, effort
from tests.servers.process import wait_until
from tests.support.pages import ROOT, blocks
from tests.support.registry import RegistryThread
from tests.support.spark import QUICK_CONF, create_topic, iceberg_table, make_job, produce

pytestmark = [pytest.mark.servers, pytest.mark.proof]

PAGE = ROOT / "docs/how-to/connectors/spark-transform.md"
DDL = "item STRING, quantity INT, at TIMESTAMP"


@pytest.fixture(scope="module")
def driver() -> Iterator[SparkDriver]:
    started = SparkDriver(stopping=threading.Event(), idle_s=60)
    yield started
    started.close()


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryThread]:
    with RegistryThread() as started:
        yield started


class Topic:
    """A topic of JSON, with one partition."""

    def __init__(self, bootstrap: str) -> None:
        self.name, self.bootstrap, self.end = f"t{uuid.uuid4().hex[:8]}", bootstrap, 0
        create_topic(bootstrap, self.name, 1)

    def write(self, *values: Mapping[str, Any]) -> None:
        produce(self.bootstrap, self.name, [(0, value.get("item"), json.dumps(value)) for value in values])
        self.end += len(values)

    def input(self, ddl: str = DDL, **more: Any) -> Input:
        bounds = {} if more.pop("unbounded", False) else {"0": self.end}
        return Input(self.name, dict.fromkeys(bounds, 0), bounds, "json", ddl, **more)

    def records(self) -> list[tuple[bytes | None, bytes]]:
        """Keys and values that readers of committed records see."""
        config = {
            "bootstrap.servers": self.bootstrap,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        consumer, seen = Consumer(config), []
        consumer.assign([TopicPartition(self.name, 0, OFFSET_BEGINNING)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            seen.append((message.key(), message.value()))
        consumer.close()
        assert message is not None
        return seen


@pytest.fixture
def topic(tidegate_broker: Any) -> Callable[[], Topic]:
    return lambda: Topic(tidegate_broker.bootstrap_servers)


CONF = QUICK_CONF | {"spark.sql.shuffle.partitions": "1"}


def job_of(*inputs: Input, folder: Path | str = "", **given: Any) -> Job:
    return make_job(given.pop("bootstrap"), list(inputs), folder, **{"registry": {}, "conf": CONF} | given)


def run(driver: SparkDriver, job: Job) -> Mapping[str, Any]:
    return driver.run(job, lambda said: None)


def into(topic: Topic, **more: Any) -> TopicOutput:
    return TopicOutput(
        **{"topic": topic.name, "key_columns": [], "value_format": "json", "key_format": "binary"} | more
    )


def stream(folder: Path, **more: Any) -> Stream:
    given: dict[str, Any] = {
        "checkpoint": str(folder / "checkpoint"),
        "ends": True,
        "interval_ms": 0,
        "max_offsets": 0,
        "starting": "earliest",
        "output_mode": "append",
        "watermark_column": "",
        "watermark_delay": "0 seconds",
        "loses_data": False,
    }
    return Stream(**given | more)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return ds.dataset(folder).to_table().to_pylist() if list(folder.glob("part-*")) else []


def sale(item: str, quantity: int, minute: int = 0) -> dict[str, Any]:
    return {"item": item, "quantity": quantity, "at": f"2026-01-01T10:{minute:02}:00Z"}


def test_a_query_makes_records_with_keys_and_a_registered_schema(
    driver: SparkDriver, topic: Callable[[], Topic], registry: RegistryThread
) -> None:
    sales, totals = topic(), topic()
    sales.write(sale("tea", 2), sale("rice", 1), sale("tea", 3))
    sql = f"SELECT item, sum(quantity) AS sold FROM {sales.name} GROUP BY item"
    output = into(totals, key_columns=["item"], value_format="avro", key_format="string")
    given = {"sql": sql, "topic": output, "registry": {"schema.registry.url": registry.url}}
    job = job_of(sales.input(), bootstrap=sales.bootstrap, **given)
    (shown,) = run(driver, dataclasses.replace(job, preview_rows=5))["preview"]
    assert shown.startswith(f"{totals.name}\ncolumns:\n  item STRING\n  sold BIGINT\nrows:\n")
    assert totals.records() == []
    done = run(driver, job)
    assert done["rows"] == {sales.name: 3}
    assert sorted(key for key, _ in totals.records()) == [b"rice", b"tea"]
    with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
        fields = json.loads(client.version(f"{totals.name}-value").text)["fields"]
    assert [field["name"] for field in fields] == ["item", "sold"]


def test_a_run_that_is_repeated_is_in_the_topic_once_where_that_was_asked_for(
    driver: SparkDriver, topic: Callable[[], Topic]
) -> None:
    sales, copies = topic(), topic()
    sales.write(sale("tea", 2), sale("rice", 1))
    output = into(copies, once=True, group=f"connect-{copies.name}-output")
    given = {"sql": f"SELECT item FROM {sales.name}", "topic": output}
    for run_id in ("a", "a", "b", "b"):
        done = run(driver, job_of(sales.input(), bootstrap=sales.bootstrap, run_id=run_id, **given))
    assert done["note"] == "the topic has the run already"
    assert len(copies.records()) == 4


A_LIST = """

def a_list(views, spark):
    return list(views)
"""


@pytest.mark.long
def test_the_function_of_the_page_gets_the_views_and_each_must_return_a_dataframe(
    topic: Callable[[], Topic], tmp_path: Path
) -> None:
    sales = topic()
    sales.write(sale("tea", 2), sale("tea", 3))
    of_page, _ = blocks(PAGE, "python")
    (tmp_path / "of_a_shop.py").write_text(of_page.text.replace("sales", sales.name) + A_LIST)
    given = {"python_path": [str(tmp_path)]}
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)  # its folders are those of its first job
    with contextlib.closing(driver):
        job = job_of(
            sales.input(), bootstrap=sales.bootstrap, folder=tmp_path / "out", function="of_a_shop:sold", **given
        )
        run(driver, job)
        assert rows_of(tmp_path / "out") == [{"item": "tea", "sum(quantity)": 5}]
        job = job_of(
            sales.input(), bootstrap=sales.bootstrap, folder=tmp_path / "out", function="of_a_shop:a_list", **given
        )
        with pytest.raises(ConnectError, match="of_a_shop:a_list returned list: it must return a DataFrame"):
            run(driver, job)


@pytest.mark.long
def test_the_state_of_the_page_outlives_its_driver(topic: Callable[[], Topic], tmp_path: Path) -> None:
    sales = topic()
    (code,) = (block for block in blocks(PAGE, "python") if "transformWithState" in block.text)
    (tmp_path / "of_a_shop.py").write_text(code.text.replace('"sales"', f'"{sales.name}"'))
    given = {"function": "of_a_shop:hundreds", "python_path": [str(tmp_path)], "stream": stream(tmp_path)}
    for sold in ([], [120]):
        sales.write(sale("tea", 60), sale("rice", 1))
        with contextlib.closing(SparkDriver(stopping=threading.Event(), idle_s=60)) as driver:
            run(
                driver,
                job_of(sales.input(unbounded=True), bootstrap=sales.bootstrap, folder=tmp_path / "out", **given),
            )
        assert sorted(row["sold"] for row in rows_of(tmp_path / "out")) == sold


@pytest.mark.long
def test_a_stream_keeps_its_state_from_one_job_to_the_next(
    driver: SparkDriver, topic: Callable[[], Topic], tmp_path: Path
) -> None:
    sales = topic()
    sql = (
        "SELECT item, window.start AS at, sum(quantity) AS sold FROM "
        f"{sales.name} GROUP BY item, window(at, '10 minutes')"
    )
    given = {
        "sql": sql,
        "stream": stream(tmp_path, watermark_column="at", watermark_delay="5 minutes", max_offsets=2),
    }
    sold = []
    for sales_of_job in (
        [sale("tea", 1, 1), sale("tea", 2, 5), sale("tea", 4, 8)],
        [sale("tea", 8, 9), sale("tea", 1, 26)],
        [sale("tea", 99, 2), sale("tea", 1, 50)],  # of which the first is too late
    ):
        sales.write(*sales_of_job)
        done = run(
            driver, job_of(sales.input(unbounded=True), bootstrap=sales.bootstrap, folder=tmp_path / "out", **given)
        )
        assert done["ends"] == {sales.name: {"0": sales.end}}
        assert done["in"] == len(sales_of_job)
        sold.append(sorted(row["sold"] for row in rows_of(tmp_path / "out")))
    assert sold == [[], [15], [1, 15]]


@pytest.mark.long
def test_streams_are_joined_with_each_other_and_with_a_table_as_it_is_now(
    driver: SparkDriver, topic: Callable[[], Topic], tmp_path: Path
) -> None:
    sales, shipments, prices = topic(), topic(), topic()
    sql = f"""
        SELECT s.item, s.quantity, h.quantity AS shipped, p.price FROM {sales.name} s
        JOIN {shipments.name} h ON s.item = h.item AND h.at BETWEEN s.at AND s.at + INTERVAL 10 MINUTES
        JOIN {prices.name} p ON s.item = p.item"""
    inputs = [
        sales.input(unbounded=True),
        shipments.input(unbounded=True),
        prices.input("item STRING, price INT", unbounded=True, lookup=True),
    ]
    given = {"sql": sql, "stream": stream(tmp_path, watermark_column="at")}
    for price, minute in ((5, 1), (6, 2)):
        prices.write({"item": "tea", "price": price})
        sales.write(sale("tea", minute, minute))
        shipments.write(sale("tea", 100, minute), sale("rice", 100, minute))
        run(driver, job_of(*inputs, bootstrap=sales.bootstrap, folder=tmp_path / "out", **given))
    rows = sorted((row["quantity"], row["shipped"], row["price"]) for row in rows_of(tmp_path / "out"))
    assert rows == [(1, 100, 5), (1, 100, 6), (2, 100, 6)]


@pytest.mark.long
def test_each_micro_batch_reads_the_table_as_it_is_then(topic: Callable[[], Topic], tmp_path: Path) -> None:
    sales, prices = topic(), topic()
    sales.write(sale("tea", 1))
    inputs = [
        sales.input(unbounded=True),
        prices.input("item STRING, price INT", unbounded=True, lookup=True),
    ]
    sql = f"SELECT quantity, price FROM {sales.name} s LEFT JOIN {prices.name} p ON s.item = p.item"
    stopping = threading.Event()

    def on_progress(said: Mapping[str, Any]) -> None:
        if said.get("ends") == {sales.name: {"0": sales.end}}:
            if sales.end == 3:
                stopping.set()
                return
            prices.write({"item": "tea", "price": sales.end})
            sales.write(sale("tea", sales.end + 1))

    given = {"sql": sql, "stream": stream(tmp_path, ends=False)}
    with contextlib.closing(SparkDriver(stopping=stopping, idle_s=60)) as driver:
        driver.run(job_of(*inputs, bootstrap=sales.bootstrap, folder=tmp_path / "out", **given), on_progress)
    rows = sorted((row["quantity"], row["price"]) for row in rows_of(tmp_path / "out"))
    assert rows == [(1, None), (2, 1), (3, 2)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("sql", "more", "words"),
    [
        ("SELECT 100 / quantity AS each\nFROM {view}", {}, r"DIVIDE_BY_ZERO.* line 1, position 8: SELECT 100 / quantity"),
        ("SELECT nothing FROM {view}", {}, r"nothing.*The query can use: {view} \(item STRING"),
        pytest.param("SELECT 1 AS n", {}, "the result is no stream: spark.mode available-now needs one of {view} in it", marks=pytest.mark.long),
        pytest.param("SELECT * FROM {view}", {"watermark_column": "time"}, "spark.watermark.column is time, and no topic has that column", marks=pytest.mark.long),
    ],
    ids=["value", "column", "no stream", "watermark"],
)  # fmt: skip
def test_a_stream_that_fails_is_told_in_the_words_of_a_job(
    driver: SparkDriver, topic: Callable[[], Topic], tmp_path: Path, sql: str, more: dict[str, Any], words: str
) -> None:
    sales = topic()
    sales.write(sale("tea", 0))
    given = {"sql": sql.replace("{view}", sales.name), "stream": stream(tmp_path, **more)}
    with pytest.raises(ConnectError, match=words.replace("{view}", sales.name)):
        run(driver, job_of(sales.input(unbounded=True), bootstrap=sales.bootstrap, folder=tmp_path / "out", **given))


@pytest.mark.long
def test_a_full_disk_is_told_with_the_checkpoint_that_is_on_it(
    driver: SparkDriver, topic: Callable[[], Topic], tmp_path: Path
) -> None:
    sales = topic()
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "tidegate-start.json").symlink_to("/dev/full")
    given = {"sql": f"SELECT * FROM {sales.name}", "stream": stream(tmp_path)}
    with pytest.raises(ConnectError, match=f"no space is left for the checkpoint {tmp_path}/checkpoint: make room"):
        run(driver, job_of(sales.input(unbounded=True), bootstrap=sales.bootstrap, folder=tmp_path / "out", **given))


STUCK = """
from pathlib import Path

def stuck(views, spark):
    (view,) = views.values()
    return view.mapInArrow(wait, view.schema)

def wait(batches):
    import signal
    for batch in batches:
        Path("FOLDER/reached").touch()
        signal.pause()
        yield batch
"""


@pytest.mark.long
def test_a_micro_batch_that_does_not_end_is_killed_with_its_driver_when_the_stream_is_stopped(
    topic: Callable[[], Topic], tmp_path: Path
) -> None:
    sales = topic()
    sales.write(sale("tea", 1))
    (tmp_path / "of_a_bug.py").write_text(STUCK.replace("FOLDER", str(tmp_path)))
    stopping = threading.Event()
    driver = SparkDriver(stopping=stopping, idle_s=60)

    def stop_when_reached() -> None:
        wait_until((tmp_path / "reached").exists, "the micro-batch has begun", timeout_s=120)
        stopping.set()

    stopper = threading.Thread(target=stop_when_reached)
    stopper.start()
    given = {"function": "of_a_bug:stuck", "python_path": [str(tmp_path)], "stream": stream(tmp_path, ends=False)}
    with contextlib.closing(driver), pytest.raises(Cancelled):
        run(driver, job_of(sales.input(unbounded=True), bootstrap=sales.bootstrap, folder=tmp_path / "out", **given))
    stopper.join()
    wait_until(lambda: left_of(tmp_path) == [], "nothing of the driver is left")
    assert rows_of(tmp_path / "out") == []


def left_of(folder: Path) -> list[int]:
    """Processes with a folder of modules on their path: the driver, its JVM and Python's workers."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in process.environ().get("PYTHONPATH", ""):
                left.append(process.pid)
    return left


class Killed:
    """A stream whose driver is killed with -9 in some micro-batch, again and again, until it has read everything."""

    def __init__(
        self, sales: Topic, tmp_path: Path, randomness: random.Random, packages: Sequence[Any], **job: Any
    ) -> None:
        self.sales, self.tmp_path, self.random, self.packages = sales, tmp_path, randomness, packages
        self.job = {"sql": f"SELECT quantity AS id FROM {sales.name}"} | job

    def once(self, after: int | None) -> None:
        """Until so many records are done, or to the end."""
        stopping = threading.Event()
        driver = SparkDriver(stopping=stopping, idle_s=60, packages=self.packages)
        given = {"stream": stream(self.tmp_path, ends=False, max_offsets=50)} | self.job

        def on_progress(said: Mapping[str, Any]) -> None:
            if said["unit"] != "rows":
                return
            if after is not None and said["done"] >= after:
                driver.kill()
            if said["ends"] == {self.sales.name: {"0": self.sales.end}}:
                stopping.set()

        job = job_of(
            self.sales.input(unbounded=True), bootstrap=self.sales.bootstrap, folder=self.tmp_path / "out", **given
        )
        with contextlib.closing(driver), contextlib.suppress(ConnectError):
            driver.run(job, on_progress)
        assert after is not None or stopping.is_set()

    def to_the_end(self, kills: int) -> None:
        for _ in range(kills):
            self.once(self.random.randrange(50, 200))
        self.once(None)


@pytest.mark.parametrize(
    "target", ["topic", pytest.param("files", marks=pytest.mark.long), pytest.param("iceberg", marks=pytest.mark.long)]
)
@pytest.mark.long
def test_each_row_is_there_once_although_the_driver_is_killed_in_its_micro_batches(
    topic: Callable[[], Topic], tmp_path: Path, target: str
) -> None:
    sales, copies, count = topic(), topic(), effort(300, 4000)
    sales.write(*(sale("tea", n) for n in range(count)))
    job: dict[str, Any] = {"connector": copies.name}
    if target == "topic":
        job["topic"] = into(copies, once=True, group=f"connect-{copies.name}-output")
    elif target == "iceberg":
        job |= {"format": "iceberg"}
    killed = Killed(sales, tmp_path, random.Random(drawn_seed()), PACKAGES.get(target, ()), **job)
    killed.to_the_end(effort(1, 10))
    if target == "topic":
        ids = [json.loads(value)["id"] for _, value in copies.records()]
    elif target == "files":
        ids = [row["id"] for row in rows_of(tmp_path / "out")]
    else:
        ids = iceberg_table(tmp_path / "out").scan().to_arrow()["id"].to_pylist()
    assert {n: times for n, times in Counter(ids).items() if times > 1} == {}
    assert sorted(ids) == list(range(count))

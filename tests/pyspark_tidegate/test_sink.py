"""The work of a Spark task that writes, without Spark: attempts, aborted jobs, brokers that go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_tidegate.sink import AbortedWrite, BatchWriter, was_committed
from pyspark_tidegate.write_options import WriteOptions
from tests.pyspark_tidegate.test_reading import Topic
from tests.pyspark_tidegate.test_records import batches as read
from tests.pyspark_tidegate.test_records import text
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread
from tidegate.kit.errors import TidegateError

TEXTS = StructType([StructField("value", StringType())])


@pytest.fixture
def topic(broker: BrokerThread, registry: RegistryThread) -> Topic:
    return Topic(broker, registry, partitions=1)


def writer(topic: Topic, **more: str) -> BatchWriter:
    options = {"kafka.bootstrap.servers": topic.broker.bootstrap_servers, "topic": topic.name, **more}
    return BatchWriter(WriteOptions.parse(options), TEXTS)


def rows(*values: str) -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pydict({"value": [value]}) for value in values])


def committed(topic: Topic, stop: int) -> list[str]:
    options = text(topic.broker.bootstrap_servers, topic.name, **{"kafka.isolation.level": "read_committed"})
    return [value for batch in read(topic.name, stop, options) for value in batch["value"].to_pylist()]


def test_the_rows_of_a_task_are_committed_with_the_job_and_once_however_often_it_was_tried(topic: Topic) -> None:
    job = writer(topic, transactions="true")
    job.write(rows("a", "b"))  # an attempt whose executor is lost after it
    message = job.write(rows("a", "b"))
    job.commit([message])
    other = writer(topic, transactions="true")
    other.commit([other.write(rows("c"))])
    empty = writer(topic, transactions="true")
    empty.commit([empty.write(rows())])
    # Two rows and an abort marker, two rows and a commit marker, one row and a commit marker.
    assert committed(topic, 8) == ["a", "b", "c"]


def test_a_task_that_begins_after_its_job_was_aborted_writes_nothing(topic: Topic) -> None:
    job = writer(topic, transactions="true")
    done = job.write(rows("a"))
    job.abort([done, None])
    with pytest.raises(AbortedWrite, match="the write was aborted before this task began"):
        job.write(rows("b"))
    with pytest.raises(TidegateError, match="committing the transaction"):
        job.commit([done])
    assert committed(topic, 2) == []


def test_whoever_repeats_a_write_finds_the_note_that_its_transaction_committed(topic: Topic) -> None:
    given = {
        "kafka.bootstrap.servers": topic.broker.bootstrap_servers,
        "topic": topic.name,
        "transactions": "true",
        "transactions.group": f"notes-{topic.name}",
    }

    def of_run(note: str) -> BatchWriter:
        return BatchWriter(WriteOptions.parse(given | {"transactions.note": note}), TEXTS)

    first = of_run("first")
    message = first.write(rows("a"))
    assert not was_committed(given | {"transactions.note": "first"})  # which aborts it, too
    with pytest.raises(TidegateError, match="committing the transaction"):
        first.commit([message])
    again = of_run("first")
    again.commit([again.write(rows("b"))])
    assert was_committed(given | {"transactions.note": "first"})
    assert not was_committed(given | {"transactions.note": "second"})
    assert committed(topic, 4) == ["b"]
    with pytest.raises(TidegateError, match="transactions.group is for transactions=true"):
        writer(topic, **{"transactions.group": "notes"})


def test_a_write_goes_on_when_its_broker_comes_back(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path)
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("texts", 1, 1)])["texts"].result(60)
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "texts"}

        def killing() -> Iterator[pa.RecordBatch]:
            for part in range(6):
                yield pa.RecordBatch.from_pydict({"value": [f"{part * 100_000 + n}" for n in range(100_000)]})
                if part == 2:
                    broker.kill()
                    broker.start()

        BatchWriter(WriteOptions.parse(options), TEXTS).write(killing())
        written = read("texts", 600_000, text(broker.bootstrap_servers, "texts"))
        assert [int(value) for batch in written for value in batch["value"].to_pylist()] == list(range(600_000))
    finally:
        broker.kill()


def test_a_key_that_needs_avro_and_a_column_that_is_none_of_a_record_are_named(topic: Topic) -> None:
    schema = StructType([StructField("key", LongType()), StructField("value", StringType())])
    options = {"kafka.bootstrap.servers": topic.broker.bootstrap_servers, "topic": topic.name}
    with pytest.raises(TidegateError, match="the key is int64: key.format binary takes binary and string"):
        BatchWriter(WriteOptions.parse(options), schema)
    message = BatchWriter(WriteOptions.parse(options | {"key.format": "string"}), schema).write(
        iter([pa.RecordBatch.from_pydict({"key": [7], "value": ["x"]})])
    )
    assert message.transaction is None
    (batch,) = read(topic.name, 1, text(topic.broker.bootstrap_servers, topic.name))
    assert batch["key"].to_pylist() == [b"7"]

"""Transactions with three clients, and edge cases as bytes on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.exchange import Peer
from tests.servers.process import wait_until

PRODUCE, FIND_COORDINATOR, INIT, ADD, ADD_OFFSETS, END, COMMIT_OFFSETS, LIST = 0, 10, 22, 24, 25, 26, 28, 66


def transactional(bootstrap_servers: str, transactional_id: str, **settings: Any) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": transactional_id, **settings})
    producer.init_transactions(30)
    return producer


def committed(bootstrap_servers: str, topic: str, *, isolation: str = "read_committed") -> dict[int, list[str]]:
    """The values in each partition, up to where readers of this isolation may read."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "none",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    values: dict[int, list[str]] = {0: [], 1: [], 2: []}
    ended: set[int] = set()
    while len(ended) < 3:
        message = consumer.poll(20)
        assert message is not None, f"no end of {set(values) - ended} in sight"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
        else:
            values[message.partition()].append(message.value().decode())
    consumer.close()
    return values


def test_only_what_was_committed_is_read(bootstrap_servers: str, topic: str) -> None:
    producer = transactional(bootstrap_servers, topic)
    for number, end in enumerate([producer.commit_transaction, producer.abort_transaction] * 3):
        producer.begin_transaction()
        for each in range(6):
            producer.produce(topic, f"{number}-{each}", partition=each % 3)
        producer.flush(60)
        end(30)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=1)
    producer.flush(60)
    expected = {
        partition: [f"{number}-{each}" for number in (0, 2, 4) for each in (partition, partition + 3)]
        for partition in range(3)
    }
    assert committed(bootstrap_servers, topic) == expected
    every = committed(bootstrap_servers, topic, isolation="read_uncommitted")
    assert [len(values) for values in every.values()] == [12, 13, 12]
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": topic, "isolation.level": "read_committed"}
    )
    _, stable = consumer.get_watermark_offsets(TopicPartition(topic, 1), timeout=60)
    assert stable == 18, "the end for readers of committed data is where the open transaction begins"
    producer.abort_transaction(30)
    wait_until(lambda: consumer.get_watermark_offsets(TopicPartition(topic, 1), timeout=60)[1] == 20, "the marker")
    consumer.close()


def test_a_waiting_reader_gets_what_a_commit_releases(bootstrap_servers: str, topic: str) -> None:
    producer = transactional(bootstrap_servers, topic)
    producer.begin_transaction()
    producer.produce(topic, "first", partition=0)
    producer.flush(60)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": topic,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 30_000,
            "fetch.min.bytes": 1,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(1) is None
    producer.commit_transaction(30)
    message = consumer.poll(10)
    assert message is not None, "the fetch went on waiting"
    assert message.value() == b"first"
    consumer.close()


def test_offsets_are_committed_with_the_records(bootstrap_servers: str, topic: str, name: Callable[[], str]) -> None:
    producer = transactional(bootstrap_servers, topic)
    group = name()
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": False})
    partition = TopicPartition(topic, 0)
    for offset, end, expected in (
        (5, producer.commit_transaction, 5),
        (7, producer.abort_transaction, 5),
        (9, producer.commit_transaction, 9),
    ):
        producer.begin_transaction()
        producer.produce(topic, str(offset), partition=0)
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata(), 30)
        end(30)
        (position,) = consumer.committed([partition], timeout=60)
        assert position.offset == expected
    consumer.close()
    assert committed(bootstrap_servers, topic)[0] == ["5", "9"]


def test_a_replaced_producer_writes_nothing_more(bootstrap_servers: str, topic: str) -> None:
    old = transactional(bootstrap_servers, topic)
    old.begin_transaction()
    old.produce(topic, "old", partition=0)
    old.flush(60)
    new = transactional(bootstrap_servers, topic)
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(30)
    assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_TXN_STATE, KafkaError._STATE)
    new.begin_transaction()
    new.produce(topic, "new", partition=0)
    new.commit_transaction(30)
    assert committed(bootstrap_servers, topic)[0] == ["new"]


def test_kafka_python_has_transactions(bootstrap_servers: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=topic, enable_idempotence=True)
    producer.init_transactions()
    for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
        producer.begin_transaction()
        for partition in range(3):
            producer.send(topic, value.encode(), partition=partition)
        producer.flush()
        end()
    producer.close()
    assert committed(bootstrap_servers, topic) == {0: ["kept"], 1: ["kept"], 2: ["kept"]}


def test_aiokafka_has_transactions(bootstrap_servers: str, topic: str) -> None:
    async def run() -> int:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=topic)
        await producer.start()
        async with producer.transaction():
            for partition in range(3):
                await producer.send_and_wait(topic, b"kept", partition=partition)
            await producer.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): 3}, topic)
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction():
                await producer.send_and_wait(topic, b"dropped", partition=0)
                raise ZeroDivisionError
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=topic)
        await consumer.start()
        offset = await consumer.committed(aiokafka.TopicPartition(topic, 0))
        await consumer.stop()
        return offset or -1

    assert asyncio.run(run()) == 3
    assert committed(bootstrap_servers, topic) == {0: ["kept"], 1: ["kept"], 2: ["kept"]}


# On the wire


class Wire:
    """A producer that sends what no client would."""

    def __init__(self, bootstrap_servers: str, transactional_id: str) -> None:
        self.peer = Peer(int(bootstrap_servers.rpartition(":")[2]))
        self.transactional_id = transactional_id
        self.id, self.epoch = -1, -1

    def init(self, *, version: int = 5, timeout_ms: int = 60_000, producer: tuple[int, int] = (-1, -1)) -> str:
        answer = self.peer.ask(
            INIT,
            version,
            {
                "transactional_id": self.transactional_id,
                "transaction_timeout": timeout_ms,
                "producer_id": producer[0],
                "producer_epoch": producer[1],
            },
        )
        if answer["error_code"] == "none":
            self.id, self.epoch = answer["producer_id"], answer["producer_epoch"]
        else:
            assert (answer["producer_id"], answer["producer_epoch"]) == (-1, -1)
        return str(answer["error_code"])

    def begin(self) -> tuple[int, int]:
        """Begin as a new instance; Kafka's coordinator may first have to be created and loaded, or abort an earlier
        transaction.
        """
        self.peer.ask(FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": [self.transactional_id]})
        wait_until(lambda: self.init() == "none", "a producer id")
        return self.id, self.epoch

    def add(self, topic: str, *, version: int = 3, epoch: int | None = None, producer_id: int | None = None) -> str:
        answer = self.peer.ask(
            ADD,
            version,
            {
                "v3_and_below_transactional_id": self.transactional_id,
                "v3_and_below_producer_id": self.id if producer_id is None else producer_id,
                "v3_and_below_producer_epoch": self.epoch if epoch is None else epoch,
                "v3_and_below_topics": [{"name": topic, "partitions": [0]}],
            },
        )
        ((topic_result,),) = (answer["results_by_topic_v3_and_below"],)
        return str(topic_result["results_by_partition"][0]["partition_error_code"])

    def produce(
        self, topic: str, *, version: int, sequence: int = 0, epoch: int | None = None, without_id: bool = False
    ) -> str:
        batch = encode_batch(
            [Record(b"key", b"value", (), 1_700_000_000_000)],
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            transactional=True,
        )
        answer = self.peer.ask(
            PRODUCE,
            version,
            {
                "transactional_id": None if without_id else self.transactional_id,
                "acks": -1,
                "timeout": 10_000,
                "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}],
            },
        )
        return str(answer["responses"][0]["partition_responses"][0]["error_code"])

    def end(self, epoch: int, *, commit: bool, version: int = 5) -> tuple[str, int, int] | str:
        answer = self.peer.ask(
            END,
            version,
            {
                "transactional_id": self.transactional_id,
                "producer_id": self.id,
                "producer_epoch": epoch,
                "committed": commit,
            },
        )
        if version < 5:
            return str(answer["error_code"])
        return answer["error_code"], answer["producer_id"], answer["producer_epoch"]

    def ended(self, epoch: int, *, commit: bool, version: int = 5) -> tuple[str, int, int] | str:
        """``end``, once an earlier one is through: Kafka answers that before its markers are written."""
        answers: list[tuple[str, int, int] | str] = []

        def settled() -> bool:
            answers.append(self.end(epoch, commit=commit, version=version))
            return "concurrent_transactions" not in (answers[-1], answers[-1][0])

        wait_until(settled, "the end of the transaction before")
        return answers[-1]


@pytest.fixture
def wire(bootstrap_servers: str, name: Callable[[], str]) -> Iterator[Wire]:
    made = Wire(bootstrap_servers, name())
    yield made
    made.peer.hang_up()


REFUSED = ("invalid_txn_state", -1, -1)


def test_the_second_version_raises_the_epoch_with_each_end(wire: Wire, topic: str) -> None:
    number, epoch = wire.begin()
    assert wire.end(epoch, commit=True) == REFUSED
    assert wire.ended(epoch, commit=False) == ("none", number, epoch + 1)
    assert wire.ended(epoch, commit=False) == ("none", number, epoch + 1)
    assert wire.end(epoch, commit=True) == REFUSED
    assert wire.end(epoch + 1, commit=True) == REFUSED
    wire.epoch = epoch + 1
    assert wire.add(topic) == "none"
    assert wire.end(epoch, commit=True) == ("producer_fenced", -1, -1)
    assert wire.ended(epoch + 1, commit=True) == ("none", number, epoch + 2)
    assert wire.ended(epoch + 1, commit=True) == ("none", number, epoch + 2)
    assert wire.end(epoch + 1, commit=False) == REFUSED
    assert wire.ended(epoch + 2, commit=False) == ("none", number, epoch + 3)


def test_the_first_version_keeps_the_epoch(wire: Wire, topic: str) -> None:
    _, epoch = wire.begin()
    assert wire.end(epoch, commit=True, version=4) == "invalid_txn_state"
    assert wire.add(topic) == "none"
    assert wire.ended(epoch, commit=True, version=4) == "none"
    assert wire.ended(epoch, commit=True, version=4) == "none"
    assert wire.end(epoch, commit=False, version=4) == "invalid_txn_state"
    assert wire.end(epoch - 1, commit=True, version=2) == "producer_fenced"
    assert wire.end(epoch - 1, commit=True, version=1) == "invalid_producer_epoch"


def test_a_new_instance_aborts_and_fences(wire: Wire, topic: str) -> None:
    number, epoch = wire.begin()
    assert wire.add(topic) == "none"
    assert wire.init() == "concurrent_transactions"
    assert wire.begin() == (number, epoch + 2)
    assert wire.add(topic, epoch=epoch) == "producer_fenced"
    assert wire.add(topic, epoch=epoch, version=1) == "invalid_producer_epoch"
    assert wire.add(topic, producer_id=number + 1) == "invalid_producer_id_mapping"
    assert wire.add("missing") == "unknown_topic_or_partition"
    assert wire.add("__consumer_offsets") == "topic_authorization_failed"


def test_a_producer_goes_on_after_an_error(wire: Wire) -> None:
    number, epoch = wire.begin()
    assert wire.init(producer=(number, epoch), version=4) == "none"
    assert (wire.id, wire.epoch) == (number, epoch + 1)
    assert wire.init(producer=(number, epoch), version=4) == "none"
    assert (wire.id, wire.epoch) == (number, epoch + 1)
    assert wire.init(producer=(number, epoch - 1), version=4) in ("producer_fenced", "invalid_request")
    assert wire.init(producer=(number + 1, epoch), version=4) == "producer_fenced"
    assert wire.init(producer=(number + 1, epoch), version=3) == "invalid_producer_epoch"
    assert wire.init(producer=(-1, epoch), version=4) == "invalid_request"
    assert wire.init(timeout_ms=900_001) == "invalid_transaction_timeout"
    wire.transactional_id = ""
    assert wire.init() == "invalid_request"


def test_records_need_their_transaction(wire: Wire, topic: str) -> None:
    number, epoch = wire.begin()
    assert wire.produce(topic, version=10) == "invalid_txn_state"
    assert wire.produce(topic, version=11) == "transaction_abortable"
    assert wire.produce(topic, version=11, without_id=True) == "transactional_id_authorization_failed"
    assert wire.add(topic) == "none"
    assert wire.produce(topic, version=11, epoch=epoch + 1) == "invalid_producer_epoch"
    assert wire.produce(topic, version=11) == "none"
    assert wire.produce(topic, version=11, sequence=1) == "none"
    assert wire.produce(topic, version=11, sequence=3) == "out_of_order_sequence_number"
    assert wire.ended(epoch, commit=True, version=4) == "none"
    assert wire.ended(epoch, commit=True, version=4) == "none", "asked anew it is answered once the markers are there"
    assert wire.produce(topic, version=11, sequence=2) == "transaction_abortable"
    assert wire.add(topic) == "none"
    assert wire.produce(topic, version=11, sequence=2) == "none"


def test_the_second_version_joins_partitions_by_producing(wire: Wire, topic: str) -> None:
    number, epoch = wire.begin()
    assert wire.produce(topic, version=12, sequence=5) == "out_of_order_sequence_number"
    assert wire.produce(topic, version=12) == "none"
    assert wire.produce(topic, version=12) == "none", "a repeated batch"
    assert wire.produce(topic, version=12, sequence=1) == "none"
    assert wire.produce(topic, version=12, sequence=2, epoch=epoch + 1) == "invalid_producer_epoch"
    assert wire.end(epoch, commit=True) == ("none", number, epoch + 1)
    assert wire.ended(epoch, commit=True) == ("none", number, epoch + 1), "asked anew, once the markers are there"
    assert wire.produce(topic, version=12, sequence=2) == "invalid_producer_epoch"
    wire.epoch += 1
    wait_until(lambda: wire.produce(topic, version=12) == "none", "the markers of the transaction before")
    assert wire.ended(epoch + 1, commit=False) == ("none", number, epoch + 2)


def test_offsets_need_their_transaction(wire: Wire, topic: str, name: Callable[[], str]) -> None:
    number, epoch = wire.begin()
    group = name()

    def commit(version: int, epoch: int = epoch, offset: int = 3) -> str:
        request = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        answer = wire.peer.ask(
            COMMIT_OFFSETS,
            version,
            {
                "transactional_id": wire.transactional_id,
                "group_id": group,
                "producer_id": number,
                "producer_epoch": epoch,
                "generation_id": -1,
                "member_id": "",
                "topics": [{"name": topic, "partitions": [request]}],
            },
        )
        return str(answer["topics"][0]["partitions"][0]["error_code"])

    def fetch(*, stable: bool) -> tuple[str, int]:
        body = {
            "groups": [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}],
            "require_stable": stable,
        }
        (answer,) = wire.peer.ask(9, 8, body)["groups"][0]["topics"][0]["partitions"]
        return answer["error_code"], answer["committed_offset"]

    wait_until(lambda: fetch(stable=False) == ("none", -1), "the group coordinator")
    assert commit(3) == "invalid_txn_state"
    assert commit(4) == "transaction_abortable"
    assert commit(5, epoch=epoch + 1) == "invalid_producer_epoch"
    assert commit(5) == "none"
    assert commit(3) == "none", "it is part of the transaction by now"
    assert fetch(stable=False) == ("none", -1)
    assert fetch(stable=True) == ("unstable_offset_commit", -1)
    assert wire.end(epoch, commit=True) == ("none", number, epoch + 1)
    wait_until(lambda: fetch(stable=True) == ("none", 3), "the marker")
    who = {"transactional_id": wire.transactional_id, "producer_id": number, "producer_epoch": epoch, "group_id": group}
    # Apache Kafka answers concurrent_transactions until it has written down that the last one is complete.
    wait_until(
        lambda: wire.peer.ask(ADD_OFFSETS, 4, who)["error_code"] == "producer_fenced", "the end of the old epoch"
    )


def test_transactions_are_listed_by_pattern(wire: Wire) -> None:
    wire.begin()

    def names(version: int = 2, **filters: Any) -> Any:
        body = {"state_filters": [], "producer_id_filters": [wire.id], "duration_filter": -1, **filters}
        answer = wire.peer.ask(LIST, version, body)
        return answer["error_code"], [transaction["transactional_id"] for transaction in answer["transaction_states"]]

    assert names() == ("none", [wire.transactional_id])
    assert names(transactional_id_pattern=wire.transactional_id[:4] + ".*") == ("none", [wire.transactional_id])
    assert names(transactional_id_pattern=wire.transactional_id[:4]) == ("none", [])
    assert names(transactional_id_pattern="[") == ("invalid_regular_expression", [])
    assert names(state_filters=["Ongoing"]) == ("none", [])
    assert names(version=0, state_filters=["Empty", "Odd"]) == ("none", [wire.transactional_id])

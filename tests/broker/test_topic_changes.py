"""Creating and deleting thousands of partitions while other clients work."""

from __future__ import annotations

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

_PARTITIONS = 500


def test_others_are_served_while_partitions_are_created_and_deleted(tidegate_broker):
    settings = {"bootstrap.servers": tidegate_broker.bootstrap_servers, "log_level": 0}
    admin = AdminClient(settings)
    producer = Producer({**settings, "linger.ms": 0})
    _wait_for(admin.create_topics([NewTopic("beside", 1, 1)]))
    for begin, topic in (
        (lambda: admin.create_topics([NewTopic("wide", _PARTITIONS, 1)]), "wide"),
        (lambda: admin.delete_topics(["wide"]), None),
    ):
        changing = begin()
        served = 0
        while not all(future.done() for future in changing.values()):
            producer.produce("beside", b"x", partition=0)
            assert producer.flush(30) == 0
            served += 1
        assert served > 2
        _wait_for(changing)
        assert topic is None or len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == _PARTITIONS


def test_a_topic_whose_logs_are_being_created_has_no_leaders_yet(tidegate_broker):
    settings = {
        "bootstrap.servers": tidegate_broker.bootstrap_servers,
        "log_level": 0,
        "allow.auto.create.topics": False,
    }
    admin = AdminClient(settings)
    creating = AdminClient(settings)
    changing = creating.create_topics([NewTopic("slow", _PARTITIONS, 1)])
    codes: set[int | None] = set()
    while None not in codes:
        topic = admin.list_topics("slow", timeout=30).topics["slow"]
        codes.update(partition.error.code() if partition.error else None for partition in topic.partitions.values())
    assert codes <= {None, KafkaError.LEADER_NOT_AVAILABLE}
    # A producer that knew of the topic before its logs were there waits for them.
    producer = Producer(settings)
    producer.produce("slow", b"x", partition=_PARTITIONS - 1)
    _wait_for(changing)
    assert producer.flush(30) == 0


def test_names_that_collide_in_one_request_are_told_apart(tidegate_broker):
    admin = AdminClient({"bootstrap.servers": tidegate_broker.bootstrap_servers})
    result = admin.create_topics([NewTopic("a.b", 1, 1), NewTopic("a_b", 1, 1), NewTopic("c", 1, 1)])
    errors = {name: future.exception() for name, future in result.items()}
    assert [errors["a.b"], errors["c"]] == [None, None]
    assert "collides with 'a.b'" in str(errors["a_b"])


def _wait_for(results) -> None:
    for future in results.values():
        future.result(60)

"""Metadata responses for all topics are cached between requests, and are never outdated."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from tests.support.broker import BrokerThread, settings


def test_changes_are_seen_at_once(tmp_path: Path) -> None:
    with BrokerThread(settings(tmp_path)) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

        def topics() -> dict[str, int]:
            return {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=60).topics.items()}

        assert topics() == {}
        admin.create_topics([NewTopic("a", 2)])["a"].result(60)
        assert topics() == topics() == {"a": 2}
        admin.create_partitions([NewPartitions("a", 3)])["a"].result(60)
        admin.create_topics([NewTopic("b", 1)])["b"].result(60)
        assert topics() == {"a": 3, "b": 1}
        admin.delete_topics(["a"])["a"].result(60)
        assert topics() == {"b": 1}

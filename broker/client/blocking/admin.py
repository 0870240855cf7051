"""Admin for threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from broker.client import admin
from broker.client.acls_admin import AclBinding, AclFilter
from broker.client.batches import TopicPartition, TransactionalProducer
from broker.client.blocking.background import call
from broker.client.config import ClientConfig
from broker.client.descriptions import (
    ConfigEntry,
    GroupDescription,
    GroupListing,
    NewTopic,
    OffsetAndTimestamp,
    ProducerDescription,
    TopicDescription,
)
from tidegate.kit.errors import TidegateError

__all__ = ["Admin"]


class Admin:
    """``broker.client.Admin`` for threads."""

    def __init__(self, config: ClientConfig) -> None:
        self._real = admin.Admin(config)

    def start(self) -> Self:
        call(self._real.start())
        return self

    def stop(self) -> None:
        call(self._real.stop())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def cluster_id(self) -> str:
        return call(self._real.cluster_id())

    def list_topics(self, *, internal: bool = False) -> list[str]:
        return call(self._real.list_topics(internal=internal))

    def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        return call(self._real.describe_topics(names))

    def create_topics(self, topics: Iterable[NewTopic], *, exist_ok: bool = False, validate_only: bool = False) -> None:
        call(self._real.create_topics(topics, exist_ok=exist_ok, validate_only=validate_only))

    def await_topics(self, names: Sequence[str]) -> None:
        call(self._real.await_topics(names))

    def delete_topics(self, names: Iterable[str], *, missing_ok: bool = False) -> None:
        call(self._real.delete_topics(names, missing_ok=missing_ok))

    def create_partitions(self, topic: str, total: int) -> None:
        call(self._real.create_partitions(topic, total))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return call(self._real.delete_records(before))

    def describe_configs(self, name: str, *, resource: admin.Resource = "topic") -> dict[str, ConfigEntry]:
        return call(self._real.describe_configs(name, resource=resource))

    def producers(self, name: str) -> list[ProducerDescription]:
        return call(self._real.producers(name))

    def sizes(self, name: str) -> dict[int, int]:
        return call(self._real.sizes(name))

    def alter_configs(
        self, name: str, changes: Mapping[str, str | None], *, resource: admin.Resource = "topic"
    ) -> None:
        call(self._real.alter_configs(name, changes, resource=resource))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return call(self._real.beginning_offsets(partitions))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        return call(self._real.end_offsets(partitions, committed=committed))

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return call(self._real.offsets_for_times(timestamps_ms))

    def list_groups(self) -> list[GroupListing]:
        return call(self._real.list_groups())

    def describe_group(self, group_id: str) -> GroupDescription:
        return call(self._real.describe_group(group_id))

    def group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        return call(self._real.group_offsets(group_id))

    def group_offsets_with_notes(self, group_id: str) -> dict[TopicPartition, tuple[int, str]]:
        return call(self._real.group_offsets_with_notes(group_id))

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], notes: Mapping[TopicPartition, str] | None = None
    ) -> None:
        call(self._real.alter_group_offsets(group_id, offsets, notes))

    def share_group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        return call(self._real.share_group_offsets(group_id))

    def alter_share_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        call(self._real.alter_share_group_offsets(group_id, offsets))

    def delete_groups(self, group_ids: Iterable[str], *, missing_ok: bool = False) -> None:
        call(self._real.delete_groups(group_ids, missing_ok=missing_ok))

    def describe_acls(self, chosen: AclFilter) -> list[AclBinding]:
        return call(self._real.describe_acls(chosen))

    def create_acls(self, bindings: Sequence[AclBinding]) -> list[tuple[AclBinding, TidegateError]]:
        return call(self._real.create_acls(bindings))

    def commit_transactions(self, transactions: Iterable[TransactionalProducer]) -> None:
        call(self._real.commit_transactions(transactions))

    def claim_producer(self, transactional_id: str) -> TransactionalProducer:
        return call(self._real.claim_producer(transactional_id))

    def is_current(self, producer: TransactionalProducer) -> bool:
        return call(self._real.is_current(producer))

    def fence_producers(self, transactional_ids: Iterable[str]) -> None:
        call(self._real.fence_producers(transactional_ids))

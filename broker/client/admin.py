"""Describes and changes any Kafka cluster: topics, configs, offsets.

Groups are in ``groups_admin``, access rules in ``acls_admin``, quotas and SCRAM credentials in ``clients_admin``, transactions in ``transactions_admin``.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from aiokafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
)
from aiokafka.protocol.offset import OffsetRequest

from broker.client.batches import TopicPartition
from broker.client.cluster import check
from broker.client.descriptions import (
    CONFIG_SOURCES,
    ConfigEntry,
    NewTopic,
    OffsetAndTimestamp,
    PartitionDescription,
    ProducerDescription,
    TopicDescription,
)
from broker.client.errors import ClientTimeout
from broker.client.requests import (
    IncrementalAlterConfigsRequest,
    LogDirsRequest,
    ProducersRequest,
    TopicMetadataRequest,
    TopicNamesRequest,
)
from broker.client.transactions_admin import TransactionsAdmin
from broker.errors import LeaderNotAvailable, TopicAlreadyExists, TopicAuthorizationFailed, UnknownTopicOrPartition
from tidegate.kit.errors import TidegateError

__all__ = ["Admin"]

Resource = Literal["topic", "broker", "broker-logger"]
_RESOURCES: Final[Mapping[str, int]] = {"topic": 2, "broker": 4, "broker-logger": 8}
_SET, _DELETE = 0, 1
_LATEST, _EARLIEST = -1, -2
_AWAY_S: Final = 2.0
_Condition = Callable[[Sequence[str]], Awaitable[bool]]


class Admin(TransactionsAdmin):
    """Describes and changes a cluster. As a context manager it starts and stops itself. Calls may run concurrently.

    Every call retries retriable errors for request.timeout.ms, then raises. Errors name the topic or group.
    """

    async def cluster_id(self) -> str:
        answer = await self.retried(lambda: self.ask(TopicMetadataRequest([]), about="cluster id"))
        return str(answer.cluster_id)

    async def list_topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics in order; ``internal`` adds Kafka's own, as __consumer_offsets."""
        answer = await self.retried(lambda: self.ask(TopicNamesRequest(), about="listing topics"))
        return sorted(name for name, is_internal in answer.topics if internal or not is_internal)

    async def existing_topics(self, names: Iterable[str]) -> set[str]:
        """Those of the names that are topics which the user may describe. Asks about these alone, so it stays quick where there
        are many topics."""
        asked = sorted(set(names))
        if not asked:
            return set()
        request = TopicMetadataRequest(asked)
        answer = await self.retried(lambda: self.ask(request, about=f"looking for {', '.join(asked)}"))
        for code, name, *_ in answer.topics:
            if code not in (UnknownTopicOrPartition.code, TopicAuthorizationFailed.code):
                check(code, f"topic {name}")
        return {name for code, name, *_ in answer.topics if not code}

    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        """Topics by name. Raises UnknownTopicOrPartition for one that does not exist, at once."""

        return await self.retried(lambda: self._described(names))

    async def _described(self, names: Sequence[str], node: int | None = None) -> dict[str, TopicDescription]:
        about = f"describing {', '.join(names)}"
        answer = await self.ask(TopicMetadataRequest(list(names)), node=node, about=about)
        result = {}
        for code, name, topic_id, internal, partitions, *_ in answer.topics:
            check(code, f"topic {name}")
            described = (PartitionDescription(p[1], p[2], tuple(p[4]), tuple(p[5])) for p in partitions)
            ordered = tuple(sorted(described, key=lambda entry: entry.partition))
            result[name] = TopicDescription(name, topic_id, internal, ordered)
        return result

    async def create_topics(
        self, topics: Iterable[NewTopic], *, exist_ok: bool = False, validate_only: bool = False
    ) -> None:
        """Create topics and return when every broker knows them, with a leader for each partition.

        All are tried; the first refusal is raised then (TopicAlreadyExists, InvalidReplicationFactor, ...).
        With ``exist_ok`` a topic that is there already is left as it is.
        """
        requested = list(topics)
        told: list[tuple[Any, ...]] = [
            (t.name, t.partitions, t.replication_factor, [], list(t.configs.items())) for t in requested
        ]
        request = CreateTopicsRequest(
            create_topic_requests=told, timeout=self.request_timeout_ms, validate_only=validate_only
        )

        async def attempt() -> None:
            answer = await self.ask(request, node=await self.controller(), about="creating topics")
            for name, code, message in answer.topic_errors:
                if not (exist_ok and code == TopicAlreadyExists.code):
                    check(code, f"topic {name}", message)

        await self.retried(attempt)
        if not validate_only:
            await self.await_topics([topic.name for topic in requested])

    async def await_topics(self, names: Sequence[str]) -> None:
        """Return when every broker that answers knows these topics, with a leader for each partition.

        The brokers of a cluster hear of a new topic one after the other: one may deny what another has told.
        """
        await self._until(self._all_led, names)

    async def delete_topics(self, names: Iterable[str], *, missing_ok: bool = False) -> None:
        """Delete topics and return when they are gone from the metadata."""
        topic_names = list(names)
        answer = await self.ask(
            DeleteTopicsRequest(topic_names, self.request_timeout_ms),
            node=await self.controller(),
            about="deleting topics",
        )
        for name, code in answer.topic_error_codes:
            if not (missing_ok and code == UnknownTopicOrPartition.code):
                check(code, f"topic {name}")
        await self._until(self._all_gone, topic_names)

    async def create_partitions(self, topic: str, total: int) -> None:
        """Raise the number of partitions of a topic to ``total``."""
        request = CreatePartitionsRequest([(topic, (total, None))], self.request_timeout_ms, False)
        answer = await self.ask(request, node=await self.controller(), about=f"partitions of {topic}")
        for name, code, message in answer.topic_errors:
            check(code, f"topic {name}", message)

        async def has_them(names: Sequence[str]) -> bool:
            return len((await self.describe_topics(names))[topic].partitions) >= total and await self._all_led(names)

        await self._until(has_them, [topic])

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete the records of partitions before these offsets (-1: all); gives the new first offsets."""
        result: dict[TopicPartition, int] = {}
        for leader, partitions in (await self._by_leader(before)).items():
            asked = _by_topic((tp, before[tp]) for tp in partitions)
            request = DeleteRecordsRequest(asked, self.request_timeout_ms)
            answer = await self.ask(request, node=leader, about="deleting records")
            for name, answers, *_ in answer.topics:
                for partition, low, code, *_ in answers:
                    check(code, f"{name}-{partition}")
                    result[TopicPartition(name, partition)] = low
        return result

    async def describe_configs(self, name: str, *, resource: Resource = "topic") -> dict[str, ConfigEntry]:
        """The configs of a topic, or of a broker by its node id; sensitive values are None.

        Those of a broker-logger, by its node id too, are the levels of its loggers.
        """
        request = DescribeConfigsRequest([(_RESOURCES[resource], name, None)], False)
        node = int(name) if resource != "topic" else None
        answer = await self.retried(lambda: self.ask(request, node=node, about=f"configs of {resource} {name}"))
        result = {}
        for code, message, _, _, entries in answer.resources:
            check(code, f"configs of {resource} {name}", message)
            for key, value, read_only, source, sensitive, *_ in entries:
                result[key] = ConfigEntry(key, value, CONFIG_SOURCES.get(source, "UNKNOWN"), read_only, sensitive)
        return result

    async def producers(self, name: str) -> list[ProducerDescription]:
        """The producers that the partitions of a topic remember, by partition and id (DescribeProducers, KIP-664)."""
        made = []
        for leader, numbers in (await self._numbers_by_leader(name)).items():
            answer = await self.ask(ProducersRequest([(name, numbers)]), node=leader, about=f"producers of {name}")
            for _, partitions, *_ in answer.topics:
                for number, code, message, active, *_ in partitions:
                    check(code, f"producers of {name}-{number}", message)
                    made += [
                        ProducerDescription(number, id_, epoch, sequence, at_ms, start if start >= 0 else None)
                        for id_, epoch, sequence, at_ms, _, start, *_ in active
                    ]
        return sorted(made, key=lambda producer: (producer.partition, producer.producer_id))

    async def _numbers_by_leader(self, name: str) -> dict[int, list[int]]:
        described = (await self.describe_topics([name]))[name]
        by_leader: dict[int, list[int]] = defaultdict(list)
        for partition in described.partitions:
            if partition.leader >= 0:
                by_leader[partition.leader].append(partition.partition)
        return by_leader

    async def sizes(self, name: str) -> dict[int, int]:
        """The bytes that each partition of a topic takes on the disk of its leader (DescribeLogDirs, KIP-113).

        Raises ClusterAuthorizationFailed for users who may not describe the cluster.
        """
        made: dict[int, int] = {}
        for leader, numbers in (await self._numbers_by_leader(name)).items():
            request = LogDirsRequest([(name, numbers)])
            answer = await self.ask(request, node=leader, about=f"log directories of broker {leader}")
            for code, directory, topics in answer.results:
                check(code, f"log directory {directory} of broker {leader}")
                made |= {
                    number: size
                    for _, partitions in topics
                    for number, size, _, is_future in partitions
                    if not is_future
                }
        return made

    async def alter_configs(
        self, name: str, changes: Mapping[str, str | None], *, resource: Resource = "topic"
    ) -> None:
        """Set config keys and leave the others alone; None takes a key back to its default."""
        told = [(key, _DELETE if value is None else _SET, value) for key, value in changes.items()]
        request = IncrementalAlterConfigsRequest(_RESOURCES[resource], name, told)
        node = int(name) if resource != "topic" else await self.controller()
        answer = await self.ask(request, node=node, about=f"configs of {resource} {name}")
        for code, message, *_ in answer.responses:
            check(code, f"configs of {resource} {name}", message)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset of the oldest record, or the end of an empty partition."""
        result = await self._offsets(dict.fromkeys(partitions, _EARLIEST))
        return {tp: offset for tp, (offset, _) in result.items()}

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset the next record will get; with ``committed`` the last stable one, before any open transaction."""
        result = await self._offsets(dict.fromkeys(partitions, _LATEST), isolation=int(committed))
        return {tp: offset for tp, (offset, _) in result.items()}

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time in each partition; None where all are older."""
        result = await self._offsets(timestamps_ms)
        return {tp: None if o < 0 else OffsetAndTimestamp(o, ms) for tp, (o, ms) in result.items()}

    async def _offsets(
        self, timestamps: Mapping[TopicPartition, int], isolation: int = 0
    ) -> dict[TopicPartition, tuple[int, int]]:
        async def attempt() -> dict[TopicPartition, tuple[int, int]]:
            result: dict[TopicPartition, tuple[int, int]] = {}
            for leader, partitions in (await self._by_leader(timestamps)).items():
                asked = _by_topic((tp, timestamps[tp]) for tp in partitions)
                answer = await self.ask(OffsetRequest(-1, isolation, asked), node=leader, about="listing offsets")
                for topic, answers in answer.topics:
                    for partition, code, timestamp, offset, *_ in answers:
                        check(code, f"{topic}-{partition}")
                        result[TopicPartition(topic, partition)] = (offset, timestamp)
            return result

        return await self.retried(attempt)

    async def _by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        requested = [TopicPartition(*tp) for tp in partitions]
        if not requested:
            return {}
        topics = await self.describe_topics(sorted({tp.topic for tp in requested}))
        leaders = {TopicPartition(t.name, p.partition): p.leader for t in topics.values() for p in t.partitions}
        grouped: dict[int, list[TopicPartition]] = defaultdict(list)
        for tp in requested:
            if tp not in leaders:
                raise UnknownTopicOrPartition(f"topic {tp.topic} has no partition {tp.partition}")
            if leaders[tp] < 0:
                raise LeaderNotAvailable(f"{tp} has no leader at the moment")
            grouped[leaders[tp]].append(tp)
        return grouped

    async def _all_led(self, names: Sequence[str]) -> bool:
        nodes: list[int | None] = [*self.brokers()]
        told = await asyncio.gather(*(self._leads(node, names) for node in nodes or [None]))
        return True in told and False not in told

    async def _leads(self, node: int | None, names: Sequence[str]) -> bool | None:
        """Whether a broker knows the leaders of all partitions; None of one that is away."""
        try:
            async with asyncio.timeout(_AWAY_S):
                topics = await self._described(names, node)
        except (UnknownTopicOrPartition, LeaderNotAvailable):
            return False
        except (TidegateError, TimeoutError) as error:
            if isinstance(error, TidegateError) and not error.retriable:
                raise
            return None
        return all(partition.leader >= 0 for topic in topics.values() for partition in topic.partitions)

    async def _all_gone(self, names: Sequence[str]) -> bool:
        return not set(names) & set(await self.list_topics(internal=True))

    async def _until(self, condition: _Condition, names: Sequence[str]) -> None:
        deadline = time.monotonic() + self.request_timeout_ms / 1000
        while not await condition(names):
            if time.monotonic() > deadline:
                raise ClientTimeout(f"the change of {', '.join(names)} is not in the metadata yet")
            await asyncio.sleep(0.02)


def _by_topic(entries: Iterable[tuple[TopicPartition, int]]) -> list[tuple[str, list[tuple[int, int]]]]:
    grouped: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for (topic, partition), value in entries:
        grouped[topic].append((partition, value))
    return list(grouped.items())

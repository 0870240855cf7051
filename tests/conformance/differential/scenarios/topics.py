"""Topics and partitions are created, added, truncated and deleted."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask
from tests.conformance.differential.scenarios.common import ABSENT_ID, create_topic, written


def create(validate_only: bool = False, **topic: Any) -> Step:
    whole = {"name": "$u-new", "num_partitions": 2, "replication_factor": 1, **topic}
    return ask(ApiKey.CREATE_TOPICS, {"topics": [whole], "timeout": 10_000, "validate_only": validate_only}, once=True)


def grow(count: int, name: str = "$u", validate_only: bool = False, assignments: Any = None) -> Step:
    topic = {"name": name, "count": count, "assignments": assignments}
    return ask(
        ApiKey.CREATE_PARTITIONS, {"topics": [topic], "timeout": 10_000, "validate_only": validate_only}, once=True
    )


def config(name: str, value: str | None) -> dict[str, Any]:
    return {"name": name, "value": value}


def emptied(*partitions: tuple[int, int], name: str = "$u") -> Step:
    requested = [{"partition_index": index, "offset": offset} for index, offset in partitions]
    return ask(ApiKey.DELETE_RECORDS, {"topics": [{"name": name, "partitions": requested}], "timeout": 10_000})


SCENARIOS: Final = (
    Scenario(
        "create topics",
        ApiKey.CREATE_TOPICS,
        (
            create(validate_only=True),
            create(configs=[config("retention.ms", "4711"), config("cleanup.policy", "compact")]),
            create(),
            create(name="no/name"),
            create(name=""),
            create(name=".."),
            create(name="$u.new"),
            create(name="$u-a", num_partitions=0),
            create(name="$u-b", replication_factor=3),
            create(name="$u-c", replication_factor=0),
            create(name="$u-d", configs=[config("no.such.key", "1")]),
            create(name="$u-e", configs=[config("retention.ms", "soon")]),
            create(name="$u-n", configs=[config("retention.ms", None)]),
            create(
                name="$u-f",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 1, "broker_ids": [1]}],
            ),
            create(
                name="$u-g",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[{"partition_index": 0, "broker_ids": [9]}],
            ),
            create(
                name="$u-h",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[{"partition_index": 0, "broker_ids": [1, 1]}],
            ),
            create(
                name="$u-i",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[{"partition_index": 1, "broker_ids": [1]}],
            ),
            create(name="$u-j", num_partitions=2, assignments=[{"partition_index": 0, "broker_ids": [1]}]),
            create(
                name="$u-m",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[{"partition_index": 0, "broker_ids": []}],
            ),
            create(name="$u-k", validate_only=True, num_partitions=-2),
            create(name="$u-l" + "x" * 250),
            create(name="__cluster_metadata"),
            ask(ApiKey.CREATE_TOPICS, {"topics": [], "timeout": 1000}),
            ask(
                ApiKey.CREATE_TOPICS,
                {"topics": [{"name": "$u-twice", "num_partitions": 1, "replication_factor": 1}] * 2, "timeout": 1000},
                once=True,
            ),
        ),
    ),
    Scenario(
        "create topics with the broker's defaults",
        ApiKey.CREATE_TOPICS,
        (create(name="$u-f", num_partitions=-1, replication_factor=-1),),
        range(4, 8),
    ),
    Scenario(
        "delete topics",
        ApiKey.DELETE_TOPICS,
        (
            *create_topic(),
            *create_topic("$u-b", keep="b"),
            ask(
                ApiKey.DELETE_TOPICS,
                {
                    "topics": [{"name": "$u"}, {"name": "$u-absent"}],
                    "topic_names": ["$u", "$u-absent"],
                    "timeout": 10_000,
                },
                once=True,
            ),
            ask(
                ApiKey.DELETE_TOPICS,
                {"topics": [{"name": "$u-b"}], "topic_names": ["$u-b"], "timeout": 10_000},
                once=True,
            ),
        ),
    ),
    Scenario(
        "delete topics by id",
        ApiKey.DELETE_TOPICS,
        (
            *create_topic(),
            ask(ApiKey.DELETE_TOPICS, {"topics": [{"name": "$u", "topic_id": "$id"}], "timeout": 10_000}, once=True),
            ask(
                ApiKey.DELETE_TOPICS, {"topics": [{"name": None, "topic_id": ABSENT_ID}], "timeout": 10_000}, once=True
            ),
            ask(ApiKey.DELETE_TOPICS, {"topics": [{"name": None, "topic_id": None}], "timeout": 10_000}, once=True),
            ask(ApiKey.DELETE_TOPICS, {"topics": [{"name": "$u"}, {"topic_id": "$id"}], "timeout": 10_000}, once=True),
            ask(ApiKey.DELETE_TOPICS, {"topics": [{"topic_id": "$id"}], "timeout": 10_000}, once=True),
        ),
        range(6, 7),
    ),
    Scenario(
        "delete topics twice named",
        ApiKey.DELETE_TOPICS,
        (
            *create_topic(),
            ask(
                ApiKey.DELETE_TOPICS,
                {"topics": [{"name": "$u"}, {"name": "$u"}], "topic_names": ["$u", "$u"], "timeout": 10_000},
                once=True,
            ),
        ),
    ),
    Scenario(
        "more partitions",
        ApiKey.CREATE_PARTITIONS,
        (
            *create_topic(),
            grow(4, validate_only=True),
            grow(3),
            grow(5, assignments=[{"broker_ids": [1]}, {"broker_ids": [1]}]),
            grow(5),
            grow(4),
            grow(0),
            grow(-1),
            grow(7, assignments=[{"broker_ids": [1]}]),
            grow(6, assignments=[{"broker_ids": [9]}]),
            grow(6, assignments=[{"broker_ids": [1, 1]}]),
            grow(6, assignments=[{"broker_ids": []}]),
            grow(3, name="$u-absent"),
            ask(ApiKey.CREATE_PARTITIONS, {"topics": [{"name": "$u", "count": 6}] * 2, "timeout": 10_000}, once=True),
            ask(ApiKey.METADATA, {"topics": [{"name": "$u"}]}, version=12),
        ),
    ),
    Scenario(
        "delete records",
        ApiKey.DELETE_RECORDS,
        (
            *create_topic(),
            written(),
            emptied((0, 3), (1, 0)),
            emptied((0, 2)),
            emptied((0, 99)),
            emptied((0, -1)),
            emptied((0, -5)),
            emptied((7, 0)),
            emptied((0, 0), name="$u-absent"),
        ),
    ),
)

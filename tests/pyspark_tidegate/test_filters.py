"""Filters that Spark pushes down, as offsets of fewer records; the filters here are shaped as those of Spark 4.1."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StringType, StructField, StructType

from pyspark_tidegate.options import Options
from pyspark_tidegate.source import _PushingReader
from tests.pyspark_tidegate.test_reading import Topic
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread


@dataclass(frozen=True)
class Filter:
    attribute: tuple[str, ...]
    value: Any = None


class EqualTo(Filter): ...


class In(Filter): ...


class GreaterThan(Filter): ...


class GreaterThanOrEqual(Filter): ...


class LessThan(Filter): ...


class LessThanOrEqual(Filter): ...


class IsNotNull(Filter): ...


EPOCH = dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)  # 1,700,000,000 s


def test_filters_narrow_the_offsets_that_are_read_and_stay_with_spark(
    broker: BrokerThread, registry: RegistryThread
) -> None:
    topic = Topic(broker, registry)
    # Each record is a second later than the one before, but for an old one at the end of partition 1.
    for n in range(6):
        topic.write_raw(str(n).encode(), partition=n % 2, timestamp=1_700_000_000_000 + n * 1000)
    topic.write_raw(b"late", partition=1, timestamp=1_700_000_000_000)

    def ranges(*filters: Filter, columns: str = "") -> list[tuple[int, int, int]]:
        options = Options.parse(topic.options(columns=columns, **{"value.format": "string"}), stream=False)
        reader = _PushingReader(options, StructType([StructField("value", StringType())]))
        assert list(reader.pushFilters(list(filters))) == list(filters)
        return [(part.range.partition, part.range.start, part.range.stop) for part in reader.partitions()]

    assert ranges(IsNotNull(("offset",)), GreaterThan(("value",), "x")) == [(0, 0, 3), (1, 0, 4)]
    assert ranges(EqualTo(("partition",), 1)) == [(1, 0, 4)]
    assert ranges(In(("partition",), (0, 5)), GreaterThan(("offset",), 0), LessThanOrEqual(("offset",), 1)) == [
        (0, 1, 2)
    ]
    assert ranges(GreaterThanOrEqual(("offset",), 2), LessThan(("offset",), 3)) == [(0, 2, 3), (1, 2, 3)]
    assert ranges(EqualTo(("offset",), 3)) == [(1, 3, 4)]
    assert ranges(GreaterThanOrEqual(("timestamp",), EPOCH + dt.timedelta(seconds=3))) == [(0, 2, 3), (1, 1, 4)]
    assert ranges(GreaterThan(("timestamp",), EPOCH + dt.timedelta(hours=1))) == []
    assert ranges(EqualTo(("topic",), "another")) == []
    assert ranges(EqualTo(("topic",), topic.name), In(("topic",), ("another", topic.name))) == [(0, 0, 3), (1, 0, 4)]
    assert ranges(EqualTo(("value", "offset"), 1)) == [(0, 0, 3), (1, 0, 4)]
    assert ranges(EqualTo(("offset",), 3), columns="value,offset") == [(1, 3, 4)]
    # Without the column of the source, one of its name is a field of the value.
    assert ranges(EqualTo(("offset",), 3), columns="value,partition") == [(0, 0, 3), (1, 0, 4)]

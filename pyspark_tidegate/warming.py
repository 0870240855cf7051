"""Made-up rows, read as topics are: they start the processes of Python that a job needs, and import there what it imports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["WarmingSource"]

_ROWS: Final = 100


class WarmingSource(DataSource):  # type: ignore[misc]
    """Two partitions of a hundred rows."""

    @classmethod
    def name(cls) -> str:
        return "tidegate_warming"

    def schema(self) -> str:
        import pyspark_tidegate.schemas  # noqa: F401
        import registry.client  # noqa: F401

        return "id BIGINT, name STRING, amount DOUBLE, at TIMESTAMP, month INT"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader()


class _Reader(DataSourceReader):  # type: ignore[misc]
    def partitions(self) -> Sequence[InputPartition]:
        import pyspark_tidegate.offsets  # noqa: F401

        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        import pyspark_tidegate.records  # noqa: F401

        numbers = range(_ROWS)
        columns = {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array(map(str, numbers), pa.string()),
            "amount": pa.array(map(float, numbers), pa.float64()),
            "at": pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * _ROWS, pa.timestamp("us", "UTC")),
            "month": pa.array([1] * _ROWS, pa.int32()),
        }
        yield pa.RecordBatch.from_pydict(columns)

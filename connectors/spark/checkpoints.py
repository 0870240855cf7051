"""Reads the checkpoint of a stream: the offsets at which it began, and those of its micro-batches."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Checkpoint", "Offsets"]

Offsets = Mapping[str, Mapping[str, int]]
"""Offsets by topic and partition."""

_START: Final = "tidegate-start.json"
_HEADER_LINES: Final = 2
"""Lines of Spark's before those of the sources."""


class Checkpoint:
    """The folder of a checkpoint, as Spark takes it. It may not exist yet."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._hadoop = spark._jvm.org.apache.hadoop.fs
        self._text_of = spark._jvm.org.apache.commons.io.IOUtils.toString
        self._folder = folder
        self._system = self._path("").getFileSystem(spark._jsc.hadoopConfiguration())

    def newest(self) -> int:
        """The number of the micro-batch that was planned last; -1: none was."""
        offsets = self._path("offsets")
        if not self._system.exists(offsets):
            return -1
        names = (status.getPath().getName() for status in self._system.listStatus(offsets))
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def ends(self, number: int) -> dict[str, dict[str, int]]:
        """The offsets before which a micro-batch ends; empty where the checkpoint has none of that number.

        A topic that is read twice, as in a join with itself, has the higher ones.
        """
        planned: dict[str, dict[str, int]] = {}
        for line in self._read(f"offsets/{number}").splitlines()[_HEADER_LINES:]:
            for topic, offsets in _offsets(line).items():
                there = planned.setdefault(topic, {})
                there |= {partition: max(at, there.get(partition, 0)) for partition, at in offsets.items()}
        return planned

    def start(self) -> Offsets:
        """The offsets that ``begin`` noted; empty where it noted none."""
        text = self._read(_START)
        return json.loads(text) if text else {}

    def begin(self, offsets: Offsets) -> None:
        """Note where the stream begins. Spark asks a Python source again for that when the first micro-batch is repeated."""
        stream = self._system.create(self._path(_START), True)
        with contextlib.closing(stream):
            stream.write(bytearray(json.dumps(offsets).encode()))

    def _path(self, name: str) -> Any:
        return self._hadoop.Path(f"{self._folder}/{name}" if name else self._folder)

    def _read(self, name: str) -> str:
        if not self._system.exists(self._path(name)):
            return ""
        with _opened(self._system, self._path(name)) as opened:
            return str(self._text_of(opened, "UTF-8"))


@contextlib.contextmanager
def _opened(system: Any, path: Any) -> Iterator[Any]:
    opened = system.open(path)
    try:
        yield opened
    finally:
        opened.close()


def _offsets(line: str) -> dict[str, dict[str, int]]:
    """A source's offsets in a checkpoint; empty where it has none."""
    return json.loads(line) if line.startswith("{") else {}

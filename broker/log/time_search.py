"""Finds records by time. The indexes tell where to start; the search may then read many records.

So a search is a value that another process can run too: it names files and reads them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.errors import BrokerError, KafkaStorageError, RequestTimedOut
from broker.log.files import FileHandle
from broker.log.headers import headers_in
from broker.protocol.records import BatchHeader
from broker.protocol.walks import first_since, newest_from, opened
from broker.work import OFF_THE_LOOP, Allowance, TooMuchWork

__all__ = ["Stretch", "TimeSearch", "search_all"]


class Stretch(NamedTuple):
    """The batches of a file from ``position`` to ``end``."""

    path: str
    position: int
    end: int


class TimeSearch(NamedTuple):
    """Searches from ``from_offset`` on for the first record at or after ``timestamp_ms``, or (None) for the first with
    the largest timestamp.

    ``stretches`` are searched in their order. For the largest timestamp they are those that may contain ``known``, the
    largest of complete segments; ``cut`` is in a segment that lost records, whose largest timestamp is unknown.
    """

    stretches: Iterable[Stretch]
    from_offset: int
    timestamp_ms: int | None
    cut: Stretch | None = None
    known: int | None = None

    def settled(self) -> TimeSearch:
        """The search with its lazy parts evaluated, for another process."""
        return self._replace(stretches=tuple(self.stretches))

    def run(self, allowance: Allowance) -> tuple[int, int] | None:
        """(timestamp, offset). Raises TooMuchWork, OSError (FileNotFoundError if a segment is gone), CorruptMessage."""
        if self.timestamp_ms is not None:
            return self._first(self.stretches, self.timestamp_ms, allowance)
        if self.cut is not None:
            newest = self._newest(self.cut, allowance)
            if newest is not None and (self.known is None or newest >= self.known):
                return self._first([self.cut], newest, allowance)
        return None if self.known is None else self._first(self.stretches, self.known, allowance)

    def _first(self, stretches: Iterable[Stretch], timestamp_ms: int, allowance: Allowance) -> tuple[int, int] | None:
        """The first match. As in Kafka it may be a transaction's marker."""
        for batch, header in self._batches(stretches, allowance):
            if header.max_timestamp >= timestamp_ms:
                data = opened(header, batch(), allowance)
                result = first_since(header, data, allowance, timestamp_ms=timestamp_ms, from_offset=self.from_offset)
                if result is not None:
                    return result
        return None

    def _newest(self, stretch: Stretch, allowance: Allowance) -> int | None:
        result: int | None = None
        for batch, header in self._batches([stretch], allowance):
            newest: int | None = header.max_timestamp
            if header.base_offset < self.from_offset:
                data = opened(header, batch(), allowance)
                newest = newest_from(header, data, allowance, from_offset=self.from_offset)
            if newest is not None and (result is None or newest > result):
                result = newest
        return result

    def _batches(self, stretches: Iterable[Stretch], allowance: Allowance) -> Iterator[tuple[_Read, BatchHeader]]:
        """The batches with records from ``from_offset`` on."""
        for path, begin, end in stretches:
            handle = FileHandle(path, create=False)
            for position, header in headers_in(handle, begin, end, path):
                allowance.spend(1)
                if header.last_offset >= self.from_offset:
                    yield _Read(handle, position, header.size), header


class _Read(NamedTuple):
    """A batch that is read on demand."""

    handle: FileHandle
    position: int
    size: int

    def __call__(self) -> bytes:
        return self.handle.read(self.position, self.size)


def search_all(searches: Iterable[TimeSearch]) -> list[tuple[int, int] | BrokerError | None]:
    """Run the searches of one request, within one allowance. Runs in the worker process."""
    allowance = Allowance(OFF_THE_LOOP)
    return [_result_of(search, allowance) for search in searches]


def _result_of(search: TimeSearch, allowance: Allowance) -> tuple[int, int] | BrokerError | None:
    try:
        return search.run(allowance)
    except BrokerError as error:
        return error
    except TooMuchWork:
        return RequestTimedOut(f"the records were not searched within {OFF_THE_LOOP.seconds:.0f} s")
    except OSError as error:  # a segment may have been deleted meanwhile: the client will ask again
        return KafkaStorageError(f"cannot look up an offset: {error.strerror or error}")

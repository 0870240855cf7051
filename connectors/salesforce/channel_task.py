"""Base class of the tasks that write the events of one Streaming API channel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from connect.api import DataError, RecordBatch, SourceTask
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.feeding import Feeder
from connectors.salesforce.following import Follower, Placed, batches_of, replay_id_of
from connectors.salesforce.streaming_config import StreamingConfig

__all__ = ["ChannelTask"]

ConfigT = TypeVar("ConfigT", bound=StreamingConfig)


class ChannelTask(SourceTask[ConfigT]):
    """Returns events that a thread receives, because a connect request blocks for as long as the server likes.

    ``start`` must call ``follow``. ``read`` runs in the thread.
    """

    @abstractmethod
    def read(self, event: Mapping[str, Any], before: int) -> Iterable[Placed]:
        """The records for one event, possibly none.

        ``before`` is the replay id from which the event would be read again.
        """

    def follow(self, client: SalesforceClient, channel: str, partition: Mapping[str, str]) -> None:
        """Start receiving, after the committed offset."""
        self._channel, self._partition = channel, partition
        follower = self._follower = Follower(
            client,
            self.config.api_version,
            channel,
            self._batches,
            position=self.context.offset(partition),
            start=self.config.initial_start,
            when_gone=self.config.invalid_replay_id,
        )
        feeder = self._feeder = Feeder(self.context)
        self.resources.callback(feeder.end, follower.abort)
        feeder.start(channel, follower.feed)

    def poll(self) -> Sequence[RecordBatch]:
        return self._feeder.next_batches()

    def _batches(self, events: Sequence[Mapping[str, Any]], before: int) -> Iterator[Sequence[RecordBatch]]:
        rows: list[Placed] = []
        for event in events:
            try:
                rows += self.read(event, before)
                before = replay_id_of(event)
            except (KeyError, TypeError, AttributeError) as error:
                raise DataError(f"an event of {self._channel} has no form that is known: {error!r}") from error
        for batch in batches_of(self._partition, rows):
            yield [batch]

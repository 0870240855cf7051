"""The Bulk API 2.0 source: reads an object's records and then its changes with queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Event

from connect.api import Dataset, Problem, RecordBatch, SourceConnector, SourceTask
from connectors.salesforce.bulk import BulkClient
from connectors.salesforce.bulk_config import BulkSourceConfig
from connectors.salesforce.bulk_query import ObjectReader
from connectors.salesforce.checking import problems_of
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.feeding import Feeder

__all__ = ["BulkSource", "BulkSourceTask"]


class BulkSourceTask(SourceTask[BulkSourceConfig]):
    """Reads one object in a separate thread, because a query job may take any time."""

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        return self.config.dataset(self.config.object_name)

    def start(self) -> None:
        client = SalesforceClient(self.config)
        self.resources.callback(client.close)
        partition = {"object": self.config.object_name}
        reader = ObjectReader(
            BulkClient(client),
            self.config.query(),
            client.describe(self.config.object_name),
            partition=partition,
            position=self.context.offset(partition),
            stopping=self.context.stopping,
        )
        feeder = self._feeder = Feeder(self.context)
        self.resources.callback(feeder.end, client.abort)
        feeder.start(self.config.object_name, lambda: reader.polling(self.config.poll_interval_ms))

    def poll(self) -> Sequence[RecordBatch]:
        return self._feeder.next_batches()


class BulkSource(SourceConnector[BulkSourceConfig]):
    """Reads an object into a topic; one task, at least once."""

    config_class = BulkSourceConfig
    task_class = BulkSourceTask

    @classmethod
    def check(cls, config: BulkSourceConfig) -> Iterable[Problem]:
        """Log in, and check that the object and its fields exist."""

        def look(client: SalesforceClient) -> None:
            description = client.describe(config.object_name)
            ObjectReader(BulkClient(client), config.query(), description, partition={}, position=None, stopping=Event())

        return problems_of(config, "salesforce.object", look)

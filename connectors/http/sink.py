"""The HTTP sink: sends each record, or several together, as a request to an API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from connect.api import DataError, Dataset, OffsetChanges, Record, RecordBatch, SinkConnector, SinkTask, get_logger
from connectors.http.aiven_config import AivenHttpSinkConfig
from connectors.http.cloud_config import HttpSinkV2Config
from connectors.http.config import HttpSinkConfig

if TYPE_CHECKING:
    from connectors.http.client import HttpClient
    from connectors.http.requests_of import HttpRequest
    from connectors.http.settings import HttpSettings

__all__ = ["AivenHttpSinkConnector", "HttpSinkConnector", "HttpSinkTask", "HttpSinkV2Connector"]

logger = get_logger(__name__)


class HttpSinkTask(SinkTask[HttpSinkConfig | AivenHttpSinkConfig | HttpSinkV2Config]):
    """Requests are sent one after the other in the order of the records, and ``put`` returns after the last response:
    at least once.
    """

    def __init__(self, config: Any, context: Any) -> None:
        super().__init__(config, context)
        self._clients: dict[int, HttpClient] = {}

    def _client(self, settings: HttpSettings) -> HttpClient:
        """The client of an API. Its settings are the same object for as long as the task runs."""
        from connectors.http.client import HttpClient

        if id(settings) not in self._clients:
            client = self._clients[id(settings)] = HttpClient(settings, self.context.stopping)
            self.resources.callback(client.close)
        return self._clients[id(settings)]

    def dataset(self, topic: str) -> Dataset:
        return Dataset.of_location(self.config.settings_of(topic).url)

    def put(self, batches: Sequence[RecordBatch]) -> None:
        from connectors.http.requests_of import requests_of

        for batch in batches:
            settings = self.config.settings_of(batch.topic)
            for made in requests_of(batch, settings):
                if isinstance(made, tuple):
                    self._refused([made[0]], made[1], settings)
                else:
                    self._send(made, settings)

    def _send(self, request: HttpRequest, settings: HttpSettings) -> None:
        from connectors.http.client import Refused

        try:
            self._client(settings).send(request)
        except Refused as error:
            self._refused(request.records, error, settings)

    def _refused(self, records: Sequence[Record], error: Exception, settings: HttpSettings) -> None:
        """Report records to ``errors.*``, which raises where errors are not tolerated; or only log them."""
        if settings.skips_errors:
            logger.error("records passed over", count=len(records), first_offset=records[0].offset, error=str(error))
            return
        for record in records:
            self.context.errant_records.report(record, error if isinstance(error, DataError) else DataError(str(error)))

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        from connectors.http.requests_of import requests_of

        for batch in batches:
            for made in requests_of(batch, self.config.settings_of(batch.topic)):
                if isinstance(made, tuple):
                    yield f"error: {made[1]}"
                else:
                    yield f"{made.method} {made.url} {(made.body or b'').decode()}".rstrip()

    def cancel(self) -> None:
        for client in list(self._clients.values()):
            client.abort()


class HttpSinkConnector(SinkConnector[HttpSinkConfig]):
    """Validation sends no request, because none is known to be without effect."""

    config_class: ClassVar[type[Any]] = HttpSinkConfig
    task_class = HttpSinkTask

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        return True


class HttpSinkV2Connector(HttpSinkConnector):
    """Confluent's HTTP sink V2, which supports several APIs."""

    config_class = HttpSinkV2Config


class AivenHttpSinkConnector(HttpSinkConnector):
    """Runs Aiven's connector's configurations."""

    config_class = AivenHttpSinkConfig

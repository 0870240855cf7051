"""A sink that posts records to a web hook as JSON, a batch a request."""

import json
from collections.abc import Iterable, Sequence

import requests

from connect.api import (
    DataError,
    Password,
    Plugin,
    PluginType,
    RecordBatch,
    RetriableConnectError,
    SinkConnector,
    SinkTask,
    config,
    hookimpl,
    key,
)


@config
class WebhookConfig:
    url: str = key("url", doc="Where to POST a JSON array of records.", importance="high")
    token: Password | None = key("token", default=None, doc="Sent as a bearer token.")


class WebhookTask(SinkTask[WebhookConfig]):
    def start(self) -> None:
        self.session = requests.Session()
        if self.config.token is not None:
            self.session.headers["Authorization"] = f"Bearer {self.config.token.reveal()}"

    def put(self, batches: Sequence[RecordBatch]) -> None:
        for batch in batches:
            if len(batch) and self._post(list(batch.records())) >= 400:
                for record in batch.records():  # which one is it? errors.* decides what becomes of it
                    if (status := self._post([record])) >= 400:
                        self.context.errant_records.report(record, DataError(f"{self.config.url} answered {status}"))

    def _post(self, records: list) -> int:
        body = json.dumps([record.value for record in records], default=str)
        try:
            answer = self.session.post(self.config.url, body, headers={"Content-Type": "application/json"}, timeout=10)
        except requests.ConnectionError as error:
            raise RetriableConnectError(f"{self.config.url} cannot be reached: {error}") from error
        if answer.status_code >= 500:
            raise RetriableConnectError(f"{self.config.url} answered {answer.status_code}")
        return answer.status_code

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        for batch in batches:
            yield f"POST {self.config.url}: {len(batch)} records of {batch.topic}"

    def stop(self) -> None:
        self.session.close()


class WebhookSink(SinkConnector[WebhookConfig]):
    config_class, task_class = WebhookConfig, WebhookTask


@hookimpl
def register_plugins() -> list[Plugin]:
    return [Plugin(PluginType.SINK, "webhook:WebhookSink", ("webhook.WebhookSink",), "1.0")]

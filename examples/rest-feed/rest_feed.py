"""A source that follows a REST feed page by page: what every other web service offers, in twenty lines."""

from collections.abc import Iterator, Mapping
from typing import Any

import requests

from connect.api import (
    Plugin,
    PluginType,
    RetriableConnectError,
    Rows,
    RowsConfig,
    RowsTask,
    SourceConnector,
    config,
    hookimpl,
    key,
)


@config
class RestFeedConfig(RowsConfig):
    url: str = key("url", doc="A feed: GET url?after=CURSOR answers {items: [...], next: CURSOR}.", importance="high")


class RestFeedTask(RowsTask[RestFeedConfig]):
    key_columns = ("id",)

    def rows(self, offset: Mapping[str, Any] | None) -> Iterator[Rows]:
        cursor = offset["cursor"] if offset else ""
        while True:
            try:
                answer = requests.get(self.config.url, params={"after": cursor}, timeout=10)
            except requests.ConnectionError as error:
                raise RetriableConnectError(f"{self.config.url} cannot be reached: {error}") from error
            answer.raise_for_status()
            page = answer.json()
            if not page["items"]:
                return  # asked again, from the latest cursor, after poll.interval.ms
            cursor = page["next"]
            yield Rows(page["items"], offset={"cursor": cursor})


class RestFeedSource(SourceConnector[RestFeedConfig]):
    config_class, task_class = RestFeedConfig, RestFeedTask


@hookimpl
def register_plugins() -> list[Plugin]:
    return [Plugin(PluginType.SOURCE, "rest_feed:RestFeedSource", ("rest_feed.RestFeedSource",), "1.0")]

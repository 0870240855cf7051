"""A source that tells which files arrive in a folder: a record with name and size for each, in the order of their names."""

from collections.abc import Sequence
from pathlib import Path

from connect.api import (
    Plugin,
    PluginType,
    Record,
    RecordBatch,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
    config,
    hookimpl,
    key,
)

FILE = Schema.struct({"name": Schema(SchemaType.STRING), "bytes": Schema(SchemaType.INT64)}, name="arrivals.File")


@config
class ArrivalsConfig:
    folder: str = key("folder", doc="The folder to watch.", importance="high")
    topic: str = key("topic", doc="The topic to write to.", importance="high")


class ArrivalsTask(SourceTask[ArrivalsConfig]):
    def start(self) -> None:
        self.partition = {"folder": self.config.folder}
        self.last = (self.context.offset(self.partition) or {"name": ""})["name"]

    def poll(self) -> Sequence[RecordBatch]:
        found = (path for path in Path(self.config.folder).iterdir() if path.is_file() and path.name > self.last)
        new = sorted(found, key=lambda path: path.name)[:100]
        if not new:
            self.context.stopping.wait(0.2)
            return []
        self.last = new[-1].name
        rows = [Record(self.config.topic, {"name": f.name, "bytes": f.stat().st_size}, FILE) for f in new]
        return [RecordBatch.from_records(rows, source_partition=self.partition, source_offset={"name": self.last})]


class ArrivalsSource(SourceConnector[ArrivalsConfig]):
    config_class, task_class = ArrivalsConfig, ArrivalsTask


@hookimpl
def register_plugins() -> list[Plugin]:
    return [Plugin(PluginType.SOURCE, "arrivals:ArrivalsSource", ("arrivals.ArrivalsSource",), "1.0")]

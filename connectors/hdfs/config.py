"""Keys of the HDFS sinks: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import Problem, config, key
from connectors.objects.config import ObjectSinkConfig, class_of
from connectors.objects.formats import FORMATS
from tidegate.kit.config import KeyType

__all__ = ["HdfsSinkConfig"]


@config
class HdfsSinkConfig(ObjectSinkConfig):
    """Which HDFS, and where in it."""

    format_class: str = key(
        "format.class",
        default="io.confluent.connect.hdfs.avro.AvroFormat",
        type=KeyType.CLASS,
        check=class_of(*FORMATS),
        doc="The format of files: AvroFormat, JsonFormat (JSON lines), ParquetFormat or ByteArrayFormat.",
        importance="high",
        group="Connector",
    )
    hdfs_url: str | None = key(
        "hdfs.url", default=None, doc="The file system, as hdfs://host:8020.", importance="high", group="Storage"
    )
    store_url: str | None = key(
        "store.url", default=None, doc="The same as hdfs.url.", importance="high", group="Storage"
    )
    conf_dir: str = key(
        "hadoop.conf.dir",
        default="",
        doc="Folder with core-site.xml and hdfs-site.xml; those that environment variables name unless given.",
        importance="high",
        group="Storage",
    )
    logs_dir: str = key(
        "logs.dir", default="logs", doc="Folder for what makes commits whole.", importance="high", group="Storage"
    )
    hive_integration: bool = key(
        "hive.integration", default=False, doc="Registering tables in Hive is not supported.", group="Hive"
    )

    @property
    def url(self) -> str:
        return (self.store_url or self.hdfs_url or "").rstrip("/")

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if not self.url.startswith(("hdfs://", "viewfs://")):
            yield Problem("hdfs.url", f"hdfs.url is {self.url!r}; it should look like hdfs://host:8020")
        if self.hive_integration:
            yield Problem("hive.integration", "tables cannot be registered in Hive: set hive.integration=false")

"""Keys of the HDFS sinks: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import KeyType, Problem, at_least, config, key
from connectors.objects.config import ObjectSinkConfig, class_of
from connectors.objects.formats import FORMATS

__all__ = ["HdfsSinkConfig"]


@config
class HdfsSinkConfig(ObjectSinkConfig):
    """The HDFS cluster, and the folders in it."""

    format_class: str = key(
        "format.class",
        default="io.confluent.connect.hdfs.avro.AvroFormat",
        type=KeyType.CLASS,
        check=class_of(*FORMATS),
        doc="The format of files: AvroFormat, JsonFormat (JSON lines), ParquetFormat, CsvFormat, TsvFormat or ByteArrayFormat.",
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
    kerberos: bool = key(
        "hdfs.authentication.kerberos",
        default=False,
        doc="Whether HDFS asks for Kerberos. The ticket is that of the worker's user (kinit); with a keytab none is fetched.",
        group="Storage",
    )
    principal: str = key(
        "connect.hdfs.principal",
        default="",
        doc="The worker's Kerberos principal; logging in with it is not supported.",
        group="Storage",
    )
    keytab: str = key(
        "connect.hdfs.keytab", default="", doc="Logging in with a keytab is not supported.", group="Storage"
    )
    name_node_principal: str = key(
        "hdfs.namenode.principal",
        default="",
        doc="Accepted for compatibility: the client finds the name node's principal by its host.",
        importance="low",
        group="Storage",
    )
    renew_period_ms: int = key(
        "kerberos.ticket.renew.period.ms",
        default=3_600_000,
        check=at_least(1),
        doc="Accepted for compatibility: the ticket is that of the worker's user, which is renewed outside (k5start).",
        importance="low",
        group="Storage",
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
        for name, value in (("connect.hdfs.principal", self.principal), ("connect.hdfs.keytab", self.keytab)):
            if value:
                yield Problem(
                    name,
                    f"{name} is {value!r}; the client does not log in by itself. Keep a ticket for the worker's user with "
                    "kinit -kt KEYTAB PRINCIPAL (k5start renews it), and leave the key out",
                )
        if self.hive_integration:
            yield Problem(
                "hive.integration",
                "tables cannot be registered in Hive here: set hive.integration=false, make an external table over the topic's "
                "folder, and let MSCK REPAIR TABLE find new folders",
            )

"""Keys of the SFTP sink: those of the local sink, how to log in, and Confluent's for the server."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from connect.api import KeyType, Problem, config, inherited, key
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.sftp import SftpKeys, SftpServerKeys, url_problems

__all__ = ["SftpSinkConfig"]


@config
class SftpSinkConfig(ObjectSinkConfig, SftpKeys, SftpServerKeys):
    """Where on which server."""

    url: str = key(
        "store.url",
        default="",
        doc="The folder to write to: sftp://user@host:22/path, or sftp://user@host:22/~/path for one of the user's. It is made when "
        "it is missing.",
        importance="high",
        group="Storage",
    )
    sftp_host: str = inherited(default="", doc="The server, in place of store.url.")
    working_dir: str = key(
        "sftp.working.dir",
        default="",
        doc="With sftp.host, the folder to write to: a whole path, or one that begins with ~ for the user's folder.",
        importance="high",
        group="Storage",
    )
    logs_dir: str = key(
        "logs.dir", default="_logs", doc="Folder below store.url for what makes commits whole.", group="Storage"
    )
    storage_class: str = key(
        "storage.class",
        default="io.confluent.connect.sftp.sink.storage.SftpSinkStorage",
        type=KeyType.CLASS,
        doc="Accepted for compatibility: files always go to the server.",
        importance="low",
        group="Storage",
    )

    @property
    def location(self) -> str:
        """The URL of the folder."""
        return self.url or self.url_of(self.working_dir)

    @property
    def location_key(self) -> str:
        return "store.url" if self.url else "sftp.host"

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.url and self.sftp_host:
            yield Problem("store.url", "give store.url, or sftp.host and sftp.working.dir")
        if self.sftp_host and not self.working_dir.startswith(("/", "~")):
            name = "sftp.working.dir"
            yield Problem(name, f"{name} is {self.working_dir!r}; it should be a whole path, or begin with ~")
        parts = urlsplit(self.url)
        if not self.sftp_host and (parts.scheme != "sftp" or not parts.hostname or not parts.path):
            yield Problem("store.url", f"store.url is {self.url!r}; it should look like sftp://user@host:22/path")
        yield from url_problems("store.url", self.url)

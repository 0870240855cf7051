"""Keys of the SFTP sink: those of the local sink, and how to log in."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from connect.api import Problem, config, key
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.sftp import SftpKeys, url_problems

__all__ = ["SftpSinkConfig"]


@config
class SftpSinkConfig(ObjectSinkConfig, SftpKeys):
    """Where on which server."""

    url: str = key(
        "store.url",
        doc="The folder to write to: sftp://user@host:22/path. It is made when it is missing.",
        importance="high",
        group="Storage",
    )
    logs_dir: str = key(
        "logs.dir", default="_logs", doc="Folder below store.url for what makes commits whole.", group="Storage"
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        parts = urlsplit(self.url)
        if parts.scheme != "sftp" or not parts.hostname or not parts.path:
            yield Problem("store.url", f"store.url is {self.url!r}; it should look like sftp://user@host:22/path")
        yield from url_problems("store.url", self.url)

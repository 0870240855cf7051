"""Keys of the local sink: those of the S3 sink as far as they make sense on a disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from connect.api import Problem, config, key
from connectors.objects.config import ObjectSinkConfig

__all__ = ["LocalSinkConfig"]


@config
class LocalSinkConfig(ObjectSinkConfig):
    """Where on the disk."""

    url: str = key(
        "store.url",
        doc="The folder to write to: file:///path or an absolute path. It is made when it is missing.",
        importance="high",
        group="Storage",
    )
    logs_dir: str = key(
        "logs.dir", default="_logs", doc="Folder below store.url for what makes commits whole.", group="Storage"
    )

    @property
    def root(self) -> Path:
        return Path(unquote(urlsplit(self.url).path)) if self.url.startswith("file:") else Path(self.url)

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        parts = urlsplit(self.url)
        if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost") or not self.root.is_absolute():
            yield Problem("store.url", f"store.url is {self.url!r}; it should look like file:///path/to/folder")

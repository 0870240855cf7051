"""Datasets: what is outside the log, under the names that OpenLineage gives it, so that lineages of several tools meet.

https://openlineage.io/docs/spec/naming
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

__all__ = ["Dataset"]


class Dataset(NamedTuple):
    """A table, a topic, or a folder of files. ``namespace`` says in which system: ``postgres://db:5432``, ``s3://bucket``."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Both as one; of files the path alone."""
        if "://" in self.namespace:
            return f"{self.namespace.rstrip('/')}/{self.name.lstrip('/')}"
        return self.name if self.namespace == "file" else f"{self.namespace}/{self.name}"

    @classmethod
    def of_location(cls, location: str) -> Dataset:
        """Of a folder or file: ``s3://bucket/a/b``, ``hdfs://host:8020/a``, ``file:///a`` or a path. Without credentials."""
        scheme, host, path = _parts(location)
        if scheme in ("", "file"):
            return cls("file", path)
        scheme = "s3" if scheme in ("s3a", "s3n") else scheme
        return cls(f"{scheme}://{host}", path.strip("/") or "/")

    @classmethod
    def of_topic(cls, bootstrap_servers: str, topic: str) -> Dataset:
        """Of a topic; a cluster goes by the first of its servers."""
        return cls(f"kafka://{bootstrap_servers.split(',', maxsplit=1)[0].strip()}", topic)


def _parts(location: str) -> tuple[str, str, str]:
    if "://" not in location:
        scheme, colon, rest = location.partition(":")
        return ("", "", rest) if colon and scheme == "file" else ("", "", location)
    split = urlsplit(location)
    return split.scheme.lower(), split.netloc.rpartition("@")[2], split.path

"""A folder of an object store (S3, Google Cloud Storage, Azure Blob)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from connect.api import ConnectError
from connectors.folders.stores import Folder, StoredFile
from connectors.objects.azure import azure_settings
from connectors.objects.buckets import Bucket, StoredObject
from connectors.objects.gcs import gcs_settings

if TYPE_CHECKING:
    from connectors.folders.config import FolderSourceConfig

__all__ = ["ObjectFolder"]


class ObjectFolder(Folder):
    """Objects whose names begin with the path of the URI. A move is a copy and a deletion, as object stores have no other."""

    def __init__(self, config: FolderSourceConfig) -> None:
        super().__init__(config)
        parts = urlsplit(self.location)
        self._url, self._prefix = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
        allow_http = {"allow_http": config.endpoint.startswith("http:")} if config.endpoint else {}
        self._bucket = Bucket(self._url, _settings(parts.scheme, config), allow_http)

    def list(self, after: str | None = None) -> Iterator[StoredFile]:
        cut = len(self._prefix) + 1 if self._prefix else 0
        for each in self._bucket.list(self._prefix, None if after is None else self._name(after)):
            name = each.name[cut:]
            if name and (self.config.walks or "/" not in name):
                yield _file(name, each)

    def stat(self, name: str) -> StoredFile | None:
        try:
            return _file(name, self._bucket.stat(self._name(name)))
        except FileNotFoundError:
            return None

    @contextmanager
    def open(self, name: str, *, seeks: bool) -> Iterator[BinaryIO]:
        try:
            file = self._bucket.open(self._name(name))
        except FileNotFoundError as error:
            raise ConnectError(f"{self.path(name)} is not there any more") from error
        with closing(file):
            yield file

    def move(self, name: str, folder_url: str, new_name: str) -> None:
        target = f"{self._inside(folder_url)}/{new_name}".lstrip("/")
        try:
            self._bucket.copy(self._name(name), target)
        except FileNotFoundError:
            return  # it was moved before, and deleted
        self.delete(name)

    def delete(self, name: str) -> None:
        self._bucket.delete(self._name(name))

    def check(self, folder_url: str | None = None) -> None:
        if folder_url is not None:
            self._inside(folder_url)
            return
        self._bucket.check(self._prefix)

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _inside(self, folder_url: str) -> str:
        if not folder_url.startswith(f"{self._url}/"):
            raise ConnectError(
                f"{folder_url} is not in {self._url}, where the files are: nothing is moved between buckets"
            )
        return urlsplit(folder_url).path.strip("/")


def _file(name: str, each: StoredObject) -> StoredFile:
    return StoredFile(name, each.length, each.modified_ms)


def _settings(scheme: str, config: FolderSourceConfig) -> dict[str, Any]:
    if scheme == "az":
        return azure_settings(config, config.endpoint)
    if scheme == "gs":
        return gcs_settings(config, config.endpoint)
    settings: dict[str, Any] = {"region": config.region}
    if config.access_key:
        settings |= {"access_key_id": config.access_key, "secret_access_key": config.secret_key.reveal()}
    if config.endpoint:
        settings["endpoint"] = config.endpoint
    return settings

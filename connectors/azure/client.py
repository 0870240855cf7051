"""A container as a store."""

from __future__ import annotations

from connectors.azure.config import AzureBlobSinkConfig
from connectors.objects.buckets import Bucket, BucketStore

__all__ = ["AzureStore"]


class AzureStore(BucketStore):
    def __init__(self, config: AzureBlobSinkConfig) -> None:
        url = f"az://{config.container}"
        super().__init__(Bucket(url, config.settings, config.client_options, retries=config.retries), "container")

    def folder_problem(self, folder: str, delimiter: str) -> str | None:
        """Azure takes a backslash for a slash, and drops points at the end of a part (Microsoft Learn, "Naming and
        referencing containers, blobs, and metadata"): files would replace those of other values.
        """
        if "\\" in folder:
            return f"{folder!r} cannot name a folder: Azure takes the backslash for a slash"
        if any(part.endswith(".") for part in folder.replace(delimiter, "/").split("/")):
            return f"{folder!r} cannot name a folder: Azure drops a point at the end"
        return super().folder_problem(folder, delimiter)

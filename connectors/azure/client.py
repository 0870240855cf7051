"""A container as a store."""

from __future__ import annotations

from connectors.azure.access import AzureAccess
from connectors.objects.buckets import Bucket, BucketStore

__all__ = ["AzureStore", "bucket_of"]


def bucket_of(config: AzureAccess) -> Bucket:
    return Bucket(f"az://{config.container}", config.settings, config.client_options, retries=config.retries)


class AzureStore(BucketStore):
    def __init__(self, config: AzureAccess) -> None:
        super().__init__(bucket_of(config), "container")

    def folder_problem(self, folder: str, delimiter: str) -> str | None:
        """Azure takes a backslash for a slash, and drops points at the end of a part (Microsoft Learn, "Naming and
        referencing containers, blobs, and metadata"): files would replace those of other values.
        """
        if "\\" in folder:
            return f"{folder!r} cannot name a folder: Azure takes the backslash for a slash"
        if any(part.endswith(".") for part in folder.replace(delimiter, "/").split("/")):
            return f"{folder!r} cannot name a folder: Azure drops a point at the end"
        return super().folder_problem(folder, delimiter)

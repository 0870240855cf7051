"""Keys of the Azure Blob Storage sink: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import KeyType, Problem, between, config, key
from connectors.azure.access import UNUSED, AzureAccess
from connectors.objects.config import ObjectSinkConfig, compression_key, compression_level_key

__all__ = ["AzureBlobSinkConfig"]


@config
class AzureBlobSinkConfig(ObjectSinkConfig, AzureAccess):
    """How files are stored in the container."""

    compression: str = compression_key("az.compression.type", "Azure")
    compression_level: int = compression_level_key("az.compression.level", "Azure")
    block_size: int = key(
        "azblob.block.size",
        default=26_214_400,
        type=KeyType.INT,
        check=between(5_242_880, 104_857_600),
        doc=f"{UNUSED}: files go in blocks of 8 MiB.",
        importance="low",
        group="Azure",
    )
    storage_class: str = key(
        "storage.class",
        default="io.confluent.connect.azure.blob.storage.AzureBlobStorage",
        type=KeyType.CLASS,
        doc=f"{UNUSED}: files always go to Azure.",
        importance="low",
        group="Azure",
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from self.access_problems()

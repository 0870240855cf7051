"""Keys of the Google Cloud Storage sink: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import KeyType, Problem, between, config, key
from connectors.gcs.access import UNUSED, GcsAccess
from connectors.objects.config import ObjectSinkConfig, compression_key, compression_level_key

__all__ = ["GcsSinkConfig"]


@config
class GcsSinkConfig(ObjectSinkConfig, GcsAccess):
    """How files are stored in the bucket."""

    compression: str = compression_key("gcs.compression.type", "GCS")
    compression_level: int = compression_level_key("gcs.compression.level", "GCS")
    part_size: int = key(
        "gcs.part.size",
        default=26_214_400,
        type=KeyType.INT,
        check=between(5_242_880, 2_147_483_647),
        doc=f"{UNUSED}: files go in parts of 8 MiB.",
        importance="low",
        group="GCS",
    )
    storage_class: str = key(
        "storage.class",
        default="io.confluent.connect.gcs.storage.GcsStorage",
        type=KeyType.CLASS,
        doc=f"{UNUSED}: files always go to Google Cloud Storage.",
        importance="low",
        group="GCS",
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from self.access_problems()

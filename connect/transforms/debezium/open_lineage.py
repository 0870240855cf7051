"""OpenLineage: configurations that name Debezium's transformation run, without its events."""

from __future__ import annotations

from collections.abc import Sequence

from connect.api import RecordBatch, Transformation, config
from tidegate.kit.logs import get_logger

__all__ = ["OpenLineage", "OpenLineageConfig"]

logger = get_logger(__name__)


@config
class OpenLineageConfig:
    """OpenLineage has no keys."""


class OpenLineage(Transformation):
    """Records pass untouched, as with the original. Nothing is told to OpenLineage: the original tells it the schemas of topics
    where the connector has ``openlineage.integration.enabled=true``."""

    config_class = OpenLineageConfig
    config: OpenLineageConfig

    def __init__(self, config: OpenLineageConfig) -> None:
        super().__init__(config)
        logger.warning("records pass the transformation OpenLineage; lineage is not told to OpenLineage")

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        return [batch]

"""OpenLineage: accepts configurations with Debezium's transformation, without emitting its events."""

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
    """Records pass unchanged, as in the original.

    No OpenLineage events are sent; the original sends the schemas of topics if the connector has
    ``openlineage.integration.enabled=true``.
    """

    config_class = OpenLineageConfig
    config: OpenLineageConfig

    def __init__(self, config: OpenLineageConfig) -> None:
        super().__init__(config)
        logger.warning("records pass the transformation OpenLineage; lineage is not told to OpenLineage")

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        return [batch]

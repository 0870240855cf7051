"""OpenLineage: accepts configurations with Debezium's transformation, whose work the task does itself."""

from __future__ import annotations

from collections.abc import Sequence

from connect.api import RecordBatch, Transformation, config

__all__ = ["OpenLineage", "OpenLineageConfig"]


@config
class OpenLineageConfig:
    """OpenLineage has no keys."""


class OpenLineage(Transformation):
    """Records pass unchanged, as in the original.

    The original tells OpenLineage the schemas of topics if the connector has ``openlineage.integration.enabled=true``; the task
    tells them here, with the transformation or without (``connect.task.open_lineage``).
    """

    config_class = OpenLineageConfig
    config: OpenLineageConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        return [batch]

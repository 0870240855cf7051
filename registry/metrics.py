"""The registry's metrics, at ``/metrics``."""

from __future__ import annotations

from tidegate.kit.metrics import Metrics

__all__ = ["RegistryMetrics"]


class RegistryMetrics(Metrics):
    def __init__(self) -> None:
        super().__init__()
        self.registered = self.counter("registry_schemas_registered", "Versions registered since the start.", ["type"])
        self.deleted = self.counter("registry_schemas_deleted", "Versions deleted since the start.")
        self.incompatible = self.counter("registry_schemas_refused", "Registrations refused as incompatible.")
        self.records_read = self.counter("registry_log_records", "Records of the schema log taken in.")
        self.records_invalid = self.counter("registry_log_records_invalid", "Records of the schema log passed over.")
        self.reader_restarts = self.counter(
            "registry_log_reader_restarts", "Times the reader of the schema log died and was started again."
        )

"""The metrics of the events service, at ``/metrics`` of its HTTP server."""

from __future__ import annotations

from tidegate.kit.metrics import Metrics

__all__ = ["EventMetrics"]


class EventMetrics:
    """Counters by event and protocol, and what is open now."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.published = self.metrics.counter("events_published", "Events acknowledged by the log.", ("event", "face"))
        self.refused = self.metrics.counter("events_refused", "Events refused on publish.", ("face",))
        self.delivered = self.metrics.counter("events_delivered", "Events handed to subscribers.", ("event", "face"))
        self.skipped = self.metrics.counter(
            "events_skipped_records", "Records in event topics that are no events and were not delivered.", ("event",)
        )
        self.sessions = self.metrics.gauge("events_cometd_sessions", "Open CometD sessions.")
        self.streams = self.metrics.gauge("events_pubsub_streams", "Open Pub/Sub API streams.")

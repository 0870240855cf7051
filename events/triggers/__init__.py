"""Triggers: Python functions that are called with platform events in batches, as Salesforce calls an Apex trigger.

Triggers import this package; `server.py` runs the triggers of a project folder in a separate process.
"""

from events.triggers.api import (
    InvalidReplayIdException,
    RetryableException,
    Trigger,
    TriggerContext,
    TriggerEvent,
    hookimpl,
    trigger,
)

__all__ = [
    "InvalidReplayIdException",
    "RetryableException",
    "Trigger",
    "TriggerContext",
    "TriggerEvent",
    "hookimpl",
    "trigger",
]

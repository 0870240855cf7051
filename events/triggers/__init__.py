"""Triggers: Python functions that are called with platform events in batches, as Salesforce calls an Apex trigger.

This is what a trigger imports; `server.py` runs the triggers of a project folder in a process of their own.
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

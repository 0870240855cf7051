"""Flows: reactions to platform events that a file declares: when this event, if this filter, then these actions."""

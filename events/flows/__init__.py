"""Flows: reactions to platform events, declared in a file: on this event, if this filter matches, run these actions."""

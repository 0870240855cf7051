"""Channels: streams that the service fills from event topics and captured tables."""

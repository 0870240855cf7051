"""The event bus: publishes events in order and exactly once; subscriptions read and replay a topic."""

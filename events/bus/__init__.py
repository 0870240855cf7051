"""The event bus: publish events in order and each once, subscribe to a topic, replay it."""

"""Records sent to an HTTP API."""

"""The protocols in front of the event bus, one module each: REST, SOAP login, OAuth, CometD, Pub/Sub (gRPC)."""

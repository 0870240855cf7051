"""The Pub/Sub API: ``eventbus.v1.PubSub`` over gRPC."""

"""Kafka to Kafka: topics, consumer groups' positions and heartbeats of one cluster in another (MirrorMaker 2, KIP-382)."""

"""Describes and alters the configuration of topics, brokers, groups and clients."""

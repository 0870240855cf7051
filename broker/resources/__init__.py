"""The configuration of topics, brokers, groups and clients, as it is described and altered."""

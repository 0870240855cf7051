"""The schema registry: Confluent's REST face over a log of schemas. Others use ``registry.client`` and ``registry.serde``."""

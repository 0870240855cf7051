"""The schema registry: Confluent's REST API over a log of schemas.

Other packages use ``registry.client`` and ``registry.serde``.
"""

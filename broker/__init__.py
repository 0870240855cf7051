"""A one-node Kafka broker, and the client side of any Kafka.

From other packages only ``broker.client`` is to be used; ``broker.server`` is assembled by ``tidegate.platform``.
"""

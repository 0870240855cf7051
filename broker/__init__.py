"""A one-node Kafka broker, and the client side of any Kafka.

Other packages use only ``broker.client``; ``tidegate.platform`` assembles ``broker.server``.
"""

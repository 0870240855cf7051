"""Kafka's wire protocol: converts bytes to plain values and back. No sockets, no state, no decisions.

``messages/`` is generated (``python -m broker.protocol.codegen``); ``produce`` and ``fetch`` are written by hand
because every record passes through them; ``records`` is the record batch.
"""

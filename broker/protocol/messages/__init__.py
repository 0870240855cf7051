# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.
"""One module per Kafka API: its request, its response, their parts."""

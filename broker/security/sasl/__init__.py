"""SASL: one module per mechanism, and the interface between them and the exchange."""

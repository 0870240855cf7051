"""SASL: one module per mechanism, and the exchange that they stand in."""

"""Input for a broker that no client would send: valid requests of every API and version, record batches, and what becomes of
them when bytes change. Everything follows from a ``random.Random``."""

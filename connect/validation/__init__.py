"""Connector configurations judged before they run: every key with its errors (``validation.py``), and keys that nobody reads
(``unknown_keys.py``)."""

"""Validates connector configurations: every key with its errors (``validation.py``), and unknown keys
(``unknown_keys.py``).
"""

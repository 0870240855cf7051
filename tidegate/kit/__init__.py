"""Needed by every component: typed config keys, errors, the HTTP server, metrics, logs, services.

It knows no domain words: no topic, no schema, no connector.
"""

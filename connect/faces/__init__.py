"""Where the worker's REST face listens, and who may use it.

keys, under Kafka Connect's names              ``config.py``
users of basic authentication                  ``users.py``
HTTP servers, one a listener, TLS for https    ``listeners.py``
"""

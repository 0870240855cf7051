"""Every configuration key of the runtime, under Kafka Connect's names. Connectors declare their own keys.

of a worker                            ``worker.py``, with ``group.py``, ``rest.py`` and ``hosts.py``
of any connector                       ``connector.py``
short names of managed connectors      ``cloud_keys.py``
of Kafka clients (``producer.*`` …)    ``client_keys.py``
"""

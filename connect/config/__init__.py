"""Every configuration key of the runtime, declared under Kafka Connect's names; those of a connector's own class are the connector's.

of a worker                            ``worker.py``, with ``group.py``, ``rest.py`` and ``hosts.py``
of any connector                       ``connector.py``
short names of managed connectors      ``cloud_keys.py``
of Kafka clients (``producer.*`` …)    ``client_keys.py``
"""

"""The worker's REST API: Kafka Connect's paths, bodies and texts, and ``/tidegate/v1``.

all routes                                ``routes.py``
listeners                                 ``listeners.py``
authentication and rights                 ``users.py``, ``rights.py``
requests for other workers                ``forwarding.py``, ``internal.py``
"""

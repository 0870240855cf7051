"""The worker's REST API: Kafka Connect's paths, bodies and texts, and ``/tidegate/v1``.

every route on one screen                 ``routes.py``
where it listens                          ``listeners.py``
who may do what                           ``users.py``, ``rights.py``
requests that another worker answers      ``forwarding.py``, ``internal.py``
"""

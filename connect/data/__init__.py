"""Kafka Connect's records (``org.apache.kafka.connect.data``) as Arrow columns; the basis of everything else.

schemas, and batches of records with them    ``schema.py``, ``batch.py``
headers, raw or with schemas                 ``headers.py``
Kafka Connect's JSON form of both            ``json_schema.py``, ``json_text.py`` (to), ``json_values.py`` (from)
Java's formats of values, dates and numbers  ``java``

Authors of connectors import these names from ``connect.api``.
"""

"""Records as Kafka Connect knows them (``org.apache.kafka.connect.data``), as Arrow columns; what everything else is made from.

schemas, and batches of records with them    ``schema.py``, ``batch.py``
headers, raw or with schemas                 ``headers.py``
Kafka Connect's JSON form of both            ``json_schema.py``, ``json_text.py`` (to), ``json_values.py`` (from)
Java's texts of values, dates and numbers    ``java``

Authors of connectors import these names from ``connect.api``.
"""

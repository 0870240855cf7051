"""Kafka topics as DataFrames, read and written with ``format("tidegate")``, in batches and in streams, without a jar.

Spark 4 finds the module by its name (``pyspark.sql.worker.lookup_data_sources`` looks for ``pyspark_*`` with a ``DefaultSource``);
``spark.dataSource.register(DefaultSource)`` does it by hand. Options have the names of Spark's own Kafka source, so that a job
changes one word; ``schema.registry.url`` makes values columns instead of bytes.

options                                   ``options.py``, ``write_options.py``
offsets of each partition                 ``offsets.py``
schemas of keys and values                ``schemas.py``
keys and values as columns                ``columns.py``, ``types.py``
records as Arrow batches of Spark         ``records.py``
rows of Spark as keys and values          ``encoding.py``, ``write_formats.py``
classes that Spark calls                  ``source.py``, ``sink.py``
"""

from pyspark_tidegate.source import DefaultSource

__all__ = ["DefaultSource"]

"""Source tasks: from a connector's batches to records in the log, with positions that follow what was acknowledged.

the loop of a task                                    ``runner.py``
transforms, converters, partitions, record batches    ``pipeline.py``, ``partitioning.py``, ``refusals.py``
when rows and positions are committed                 ``deliveries.py``, ``exactly_once.py``
positions, in the worker's topic or one of their own  ``offsets.py``, ``own_offsets.py``
all of it connected                                   ``ends.py``
"""

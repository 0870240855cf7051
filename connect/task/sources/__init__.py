"""Source tasks: from a connector's batches to records in the log, with positions that follow what was acknowledged.

the loop of a task                                    ``runner.py``
transforms, converters, partitions, record batches    ``pipeline.py``, ``refusals.py``
when rows and positions are committed                 ``deliveries.py``
positions, in the worker's topic or a separate one    ``offsets.py``, ``separate_offsets.py``, ``worker_offsets.py``
the clients for all that                              ``clients.py``
"""

"""Sink tasks: from records of the log to a connector's batches, with offsets that follow what the connector has stored.

the loop of a task, and of one that runs jobs     ``runner.py``, ``job_runner.py`` (``job_log.py``)
fetching                                          ``consumer.py``
converters and transforms                         ``pipeline.py``
records that could not be handled                 ``dead_letters.py``, ``rereading.py``
"""

"""Sink tasks: from records of the log to a connector's batches, with offsets that follow what it made safe.

the loop of a task, and of one that runs jobs     ``runner.py``, ``job_runner.py`` (``job_log.py``)
fetching                                          ``consumer.py``, ``merging.py``
converters and transforms                         ``pipeline.py``
what could not be handled                         ``dead_letters.py``, ``rereading.py``
"""

"""A worker's tasks in processes of their own, away from the herder and the REST API.

the worker's end: which task runs in which process    ``worker.py``, ``process.py``
the language between the two processes                ``link.py``
the other end, where plugins run                      ``host``
"""

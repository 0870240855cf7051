"""A task host: the process that plugins run in, apart from the herder and the REST API. ``host.py`` is its main loop.

one task, one connector                ``tasks.py``, ``connectors.py``
when a failed task starts again        ``restarts.py``
"""

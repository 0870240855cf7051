"""One task, in its own thread: what it consists of, its life, its clients and its error policy.

all of it put together                          ``assembly.py``
start, calls, last commit, close, stop          ``lifecycle.py``, with ``control.py`` for orders from other threads
rows into the log                               ``sources``
rows out of the log, and jobs over it           ``sinks``
what both use                                   ``clients.py``, ``senders.py``, ``error_policy.py``, ``context.py``, ``measures.py``
"""

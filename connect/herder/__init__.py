"""The herder writes users' changes to the config topic, and makes the worker's connectors and tasks follow them.

the herder, and what it does to make tasks follow    ``herder.py``, ``reconciler.py``
what users ask for over the REST API                 ``operations.py``, ``positions.py``, ``offset_changes.py``
metrics of a worker                                  ``metrics.py``
"""

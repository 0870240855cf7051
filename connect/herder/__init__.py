"""What is to run, and what runs: the herder writes users' wishes to the config topic and makes worker and tasks follow them.

the herder, and what it does to make tasks follow    ``herder.py``, ``reconciler.py``
what users ask for over the REST API                 ``operations.py``, ``positions.py``, ``offset_changes.py``
metrics of a worker                                  ``metrics.py``
"""

"""Task hosts: the processes that plugins run in, away from the process of the herder and the REST face.

``link`` is the language between the two, ``process`` the worker's end of it, ``host`` the other one.
"""

"""A whole worker: stores, herder, task processes, group and REST API put together.

in a group of workers    ``distributed.py``
alone, with files        ``standalone``
"""

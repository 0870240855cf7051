"""Assembles a worker: stores, herder, task processes, group and REST API.

in a group of workers    ``distributed.py``
alone, with files        ``standalone``
"""

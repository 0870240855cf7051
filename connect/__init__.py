"""The Connect runtime: a worker that moves record batches between external systems and the log.

``connect.api`` is what a connector's author sees; everything else here is the worker: its REST face (``routes``), the
``herder`` that decides what runs, the runners that drive tasks, the ``converters`` and the ``transforms``.
"""

"""The Connect runtime: a worker that moves record batches between external systems and the log.

Connectors use ``connect.api``, and ``connect.formats`` for files; everything else is the worker. From bottom to top:

``data``                         records, schemas and headers as Arrow columns
``api``                          the interfaces for connectors, converters and transforms
``config``, ``plugins``          keys, and the classes that configurations name
``converters``, ``transforms``   between columns and bytes, and between columns and columns
``stores``                       the worker's state: three topics
``task``                         one running task
``validation``                   validation of configurations
``worker``                       the processes that tasks run in
``group``                        workers that share connectors
``herder``                       decides what runs, and carries out users' requests
``rest``                         the REST API
``server``                       assembles everything
"""

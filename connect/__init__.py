"""The Connect runtime: a worker that moves record batches between external systems and the log.

Authors of connectors see ``connect.api``, and ``connect.formats`` for files; everything else is the worker. From bottom to top:

``data``                         records, schemas and headers as Arrow columns
``api``                          what connectors, converters and transforms are written against
``config``, ``plugins``          keys, and the classes that configurations name
``converters``, ``transforms``   between columns and bytes, and between columns and columns
``stores``                       the worker's memory: three topics
``task``                         one running task
``validation``                   configurations judged before they run
``worker``                       the processes that tasks run in
``group``                        workers that share connectors
``herder``                       what is to run, and what users ask for
``rest``                         the REST API
``server``                       all of it put together
"""

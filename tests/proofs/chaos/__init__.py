"""A platform on three brokers, three workers, two registries and two events servers, each on a host, while hosts fail.

``tests/proofs/test_chaos.py`` runs it, a seed at a time, by ``python -m tests.proofs.chaos`` in namespaces.
"""

"""The clients for threads: one event loop in the background per process runs the real ones, calls wait for it.

Every method does what its namesake in ``broker.client`` does, and raises the same errors. A producer and an Admin may be
shared by threads; a consumer belongs to one thread at a time.
"""

from broker.client.blocking.admin import Admin
from broker.client.blocking.background import call, submit
from broker.client.blocking.consumer import BatchConsumer, ThreadListener
from broker.client.blocking.producer import BatchProducer

__all__ = ["Admin", "BatchConsumer", "BatchProducer", "ThreadListener", "call", "submit"]

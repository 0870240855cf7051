"""The clients for threads. One background event loop per process runs the asyncio clients; calls wait for it.

Every method does what the method of the same name in ``broker.client`` does, and raises the same errors. Threads may
share a producer or an Admin; a consumer belongs to one thread at a time.
"""

from broker.client.blocking.admin import Admin
from broker.client.blocking.background import call, submit
from broker.client.blocking.consumer import BatchConsumer, ThreadListener
from broker.client.blocking.producer import BatchProducer

__all__ = ["Admin", "BatchConsumer", "BatchProducer", "ThreadListener", "call", "submit"]

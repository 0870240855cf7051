"""A client for any schema registry with Confluent's REST API: blocking, cached, thread-safe.

Asynchronous callers run it in ``asyncio.to_thread``.
"""

from registry.client.client import RegisteredSchema, RegistryClient
from registry.client.config import RegistryClientConfig
from registry.client.errors import Incompatible, NotFound, Refused, RegistryClientError, Unavailable
from registry.formats.avro.schema import AvroSchema
from registry.formats.parsed import ParsedSchema, Reference

__all__ = [
    "AvroSchema",
    "Incompatible",
    "NotFound",
    "ParsedSchema",
    "Reference",
    "Refused",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryClientConfig",
    "RegistryClientError",
    "Unavailable",
]

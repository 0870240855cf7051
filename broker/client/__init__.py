"""The one door to any Kafka: ours, Apache's, anyone's.

BatchProducer sends records and batches, BatchConsumer reads them, Admin describes and changes the cluster, GroupMember
joins a group of any protocol. Use each from one event loop; ``broker.client.blocking`` has the same objects for
threads, ``broker.client.columns`` turns Arrow columns into batches and back.
"""

from broker.client.acls_admin import AclBinding, AclFilter
from broker.client.admin import Admin
from broker.client.batches import (
    Ack,
    Batch,
    EncodedBatch,
    KafkaRecord,
    TopicPartition,
    TransactionalProducer,
    encode_records,
)
from broker.client.clients_admin import SCRAM_MECHANISMS, ClientQuotas
from broker.client.config import ClientConfig
from broker.client.consumer import BatchConsumer, RebalanceListener
from broker.client.descriptions import (
    ConfigEntry,
    GroupDescription,
    GroupListing,
    MemberDescription,
    NewTopic,
    OffsetAndTimestamp,
    PartitionDescription,
    ProducerDescription,
    TopicDescription,
)
from broker.client.errors import ClientClosed, ClientTimeout, IllegalUse, NotReachable
from broker.client.fenced import FencedWriter
from broker.client.fetched import FetchedBatches
from broker.client.group import Generation, GroupBehaviour, GroupMember
from broker.client.producer import BatchProducer, Transaction
from broker.protocol.access_codes import Operation, PatternType, Permission, ResourceType

__all__ = [
    "SCRAM_MECHANISMS",
    "Ack",
    "AclBinding",
    "AclFilter",
    "Admin",
    "Batch",
    "BatchConsumer",
    "BatchProducer",
    "ClientClosed",
    "ClientConfig",
    "ClientQuotas",
    "ClientTimeout",
    "ConfigEntry",
    "EncodedBatch",
    "FencedWriter",
    "FetchedBatches",
    "Generation",
    "GroupBehaviour",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "IllegalUse",
    "KafkaRecord",
    "MemberDescription",
    "NewTopic",
    "NotReachable",
    "OffsetAndTimestamp",
    "Operation",
    "PartitionDescription",
    "PatternType",
    "Permission",
    "ProducerDescription",
    "RebalanceListener",
    "ResourceType",
    "TopicDescription",
    "TopicPartition",
    "Transaction",
    "TransactionalProducer",
    "encode_records",
]

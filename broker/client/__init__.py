"""The one door to any Kafka: ours, Apache's, anyone's.

BatchProducer sends records and batches, BatchConsumer reads them, Admin describes and changes the cluster, GroupMember
joins a group of any protocol. Use each from one event loop; ``broker.client.blocking`` has the same objects for
threads, ``broker.client.columns`` turns Arrow columns into batches and back.
"""

from broker.client.acls_admin import AclBinding
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
    TopicDescription,
)
from broker.client.errors import ClientClosed, ClientTimeout, IllegalUse, NotReachable
from broker.client.fenced import FencedWriter
from broker.client.fetched import FetchedBatches
from broker.client.group import Generation, GroupBehaviour, GroupMember
from broker.client.producer import BatchProducer, Transaction

__all__ = [
    "Ack",
    "AclBinding",
    "Admin",
    "Batch",
    "BatchConsumer",
    "BatchProducer",
    "ClientClosed",
    "ClientConfig",
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
    "PartitionDescription",
    "RebalanceListener",
    "TopicDescription",
    "TopicPartition",
    "Transaction",
    "TransactionalProducer",
    "encode_records",
]

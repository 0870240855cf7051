"""The errors of Kafka's protocol, one class each, named as Kafka names the exception; each carries its wire code.

BrokerError
├── Retry      the same request may succeed later: Kafka's retriable errors
├── Refused    the request has to change first
├── Fenced     the caller was replaced or is outdated: begin again with a new id, epoch or generation
└── Failed     nothing the caller can do: an operator has to look at the broker

Raise an error where the fact is known; ``broker.handlers`` puts its code and message into the answer. Clients call
``error_for(code)`` to get the exception back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tidegate.kit.errors import FatalError, RetriableError, TidegateError, UsageError

__all__ = [
    "NONE",
    "BrokerError",
    "BrokerIdNotRegistered",
    "ClusterAuthorizationFailed",
    "ConcurrentTransactions",
    "CoordinatorLoadInProgress",
    "CoordinatorNotAvailable",
    "CorruptMessage",
    "DelegationTokenAuthDisabled",
    "DelegationTokenAuthorizationFailed",
    "DelegationTokenExpired",
    "DelegationTokenNotFound",
    "DelegationTokenOwnerMismatch",
    "DelegationTokenRequestNotAllowed",
    "DuplicateResource",
    "DuplicateSequence",
    "ElectionNotNeeded",
    "Failed",
    "FeatureUpdateFailed",
    "Fenced",
    "FencedInstanceId",
    "FencedLeaderEpoch",
    "FencedMemberEpoch",
    "FencedStateEpoch",
    "FetchSessionIdNotFound",
    "FetchSessionTopicIdError",
    "GroupAuthorizationFailed",
    "GroupIdNotFound",
    "GroupMaxSizeReached",
    "GroupNotEmpty",
    "GroupSubscribedToTopic",
    "IllegalGeneration",
    "IllegalSaslState",
    "InconsistentClusterId",
    "InconsistentGroupProtocol",
    "InconsistentTopicId",
    "InvalidCommitOffsetSize",
    "InvalidConfiguration",
    "InvalidFetchSessionEpoch",
    "InvalidFetchSize",
    "InvalidGroupId",
    "InvalidPartitions",
    "InvalidPidMapping",
    "InvalidPrincipalType",
    "InvalidProducerEpoch",
    "InvalidRecord",
    "InvalidRecordState",
    "InvalidRegistration",
    "InvalidRegularExpression",
    "InvalidReplicaAssignment",
    "InvalidReplicationFactor",
    "InvalidRequest",
    "InvalidRequiredAcks",
    "InvalidSessionTimeout",
    "InvalidShareSessionEpoch",
    "InvalidTimestamp",
    "InvalidTopic",
    "InvalidTxnState",
    "InvalidTxnTimeout",
    "InvalidUpdateVersion",
    "KafkaStorageError",
    "LeaderNotAvailable",
    "ListenerNotFound",
    "LogDirNotFound",
    "MemberIdRequired",
    "MessageTooLarge",
    "MismatchedEndpointType",
    "NetworkError",
    "NoReassignmentInProgress",
    "NotController",
    "NotCoordinator",
    "NotEnoughReplicas",
    "NotEnoughReplicasAfterAppend",
    "NotLeaderOrFollower",
    "OffsetMetadataTooLarge",
    "OffsetNotAvailable",
    "OffsetOutOfRange",
    "OperationNotAttempted",
    "OutOfOrderSequence",
    "PolicyViolation",
    "ProducerFenced",
    "ReassignmentInProgress",
    "RebalanceInProgress",
    "RebootstrapRequired",
    "RecordListTooLarge",
    "Refused",
    "RequestTimedOut",
    "ResourceNotFound",
    "Retry",
    "SaslAuthenticationFailed",
    "SecurityDisabled",
    "ShareSessionLimitReached",
    "ShareSessionNotFound",
    "StaleMemberEpoch",
    "StreamsInvalidTopology",
    "StreamsInvalidTopologyEpoch",
    "StreamsTopologyFenced",
    "TelemetryTooLarge",
    "ThrottlingQuotaExceeded",
    "TopicAlreadyExists",
    "TopicAuthorizationFailed",
    "TopicDeletionDisabled",
    "TransactionAbortable",
    "TransactionCoordinatorFenced",
    "TransactionalIdAuthorizationFailed",
    "TransactionalIdNotFound",
    "UnacceptableCredential",
    "UnknownLeaderEpoch",
    "UnknownMemberId",
    "UnknownProducerId",
    "UnknownServerError",
    "UnknownSubscriptionId",
    "UnknownTopicId",
    "UnknownTopicOrPartition",
    "UnreleasedInstanceId",
    "UnstableOffsetCommit",
    "UnsupportedAssignor",
    "UnsupportedCompressionType",
    "UnsupportedEndpointType",
    "UnsupportedForMessageFormat",
    "UnsupportedSaslMechanism",
    "UnsupportedVersion",
    "error_for",
]


class BrokerError(TidegateError):
    """An error that Kafka's protocol has a code for. Without a message it uses its class's docstring."""

    code: ClassVar[int] = -1
    records: Sequence[tuple[int, str]] = ()
    """For errors of single records: their indexes in the batch, each with its message (KIP-467)."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class Retry(BrokerError, RetriableError):
    """The same request may succeed later."""


class Refused(BrokerError, UsageError):
    """The request has to change before it can succeed."""


class Fenced(BrokerError, UsageError):
    """The caller has to begin again: with a new member id, epoch or generation."""

    http_status = 409


class Failed(BrokerError, FatalError):
    """Nothing the caller can do."""


class CorruptMessage(Retry):
    """A record batch fails its checksum or cannot be what its header says."""

    code = 2


class UnknownTopicOrPartition(Retry):
    """This broker has no such topic or partition."""

    code = 3


class LeaderNotAvailable(Retry):
    """The partition has no leader at the moment."""

    code = 5


class NotLeaderOrFollower(Retry):
    """This broker does not hold the partition."""

    code = 6


class RequestTimedOut(Retry):
    """The request was not done within its time."""

    code = 7


class NetworkError(Retry):
    """The connection ended before the answer came."""

    code = 13


class CoordinatorLoadInProgress(Retry):
    """The coordinator is still reading its log."""

    code = 14


class CoordinatorNotAvailable(Retry):
    """The coordinator is not available."""

    code = 15


class NotCoordinator(Retry):
    """This broker is not the coordinator asked for."""

    code = 16


class NotEnoughReplicas(Retry):
    """Fewer replicas are in sync than min.insync.replicas asks for."""

    code = 19


class NotEnoughReplicasAfterAppend(Retry):
    """Records were written to fewer replicas than min.insync.replicas asks for."""

    code = 20


class NotController(Retry):
    """This broker is not the controller."""

    code = 41


class ConcurrentTransactions(Retry):
    """Another operation on the same transaction is under way."""

    code = 51


class KafkaStorageError(Retry):
    """The disk failed while a log was read or written."""

    code = 56


class FetchSessionIdNotFound(Retry):
    """There is no such fetch session."""

    code = 70


class InvalidFetchSessionEpoch(Retry):
    """The epoch of the fetch session is another one."""

    code = 71


class ListenerNotFound(Retry):
    """The leader has no listener like the one asked."""

    code = 72


class FencedLeaderEpoch(Retry):
    """The leader epoch is older than the current one."""

    code = 74


class UnknownLeaderEpoch(Retry):
    """The leader epoch is newer than the current one."""

    code = 75


class OffsetNotAvailable(Retry):
    """The offset is not known yet."""

    code = 78


class ElectionNotNeeded(Retry):
    """The partition has the leader it should have."""

    code = 84


class UnstableOffsetCommit(Retry):
    """There are offsets of transactions that have not ended."""

    code = 88


class ThrottlingQuotaExceeded(Retry):
    """The quota is used up for the moment."""

    code = 89


class UnknownTopicId(Retry):
    """This broker has no topic of this id."""

    code = 100


class InconsistentTopicId(Retry):
    """The topic has another id."""

    code = 103


class FetchSessionTopicIdError(Retry):
    """The fetch session mixes topics with and without ids."""

    code = 106


class ShareSessionNotFound(Retry):
    """There is no such share session: begin one."""

    code = 122


class InvalidShareSessionEpoch(Retry):
    """The epoch of the share session is not the one expected: begin a new session."""

    code = 123


class ShareSessionLimitReached(Retry):
    """There are as many share sessions as there may be: try again."""

    code = 133


class OffsetOutOfRange(Refused):
    """The offset is not within the range this partition holds."""

    code = 1


class InvalidFetchSize(Refused):
    """The fetch size is not valid."""

    code = 4


class MessageTooLarge(Refused):
    """A record batch is larger than the topic takes."""

    code = 10


class OffsetMetadataTooLarge(Refused):
    """The text beside a committed offset is too long."""

    code = 12


class InvalidTopic(Refused):
    """The topic name is not valid, or the topic may not be used in this way."""

    code = 17


class RecordListTooLarge(Refused):
    """A record batch is larger than a log segment."""

    code = 18


class InvalidRequiredAcks(Refused):
    """Required acks must be -1, 0 or 1."""

    code = 21


class InconsistentGroupProtocol(Refused):
    """The protocols of the member do not fit those of the group."""

    code = 23


class InvalidGroupId(Refused):
    """The group id is not valid."""

    code = 24


class InvalidSessionTimeout(Refused):
    """The session timeout is outside of what the broker allows."""

    code = 26


class InvalidCommitOffsetSize(Refused):
    """The offsets to commit take too much room."""

    code = 28


class TopicAuthorizationFailed(Refused):
    """Not authorized for the topic."""

    code = 29


class GroupAuthorizationFailed(Refused):
    """Not authorized for the group."""

    code = 30


class ClusterAuthorizationFailed(Refused):
    """Not authorized for the cluster."""

    code = 31


class InvalidTimestamp(Refused):
    """The timestamp of a record is outside of what the topic accepts."""

    code = 32


class UnsupportedSaslMechanism(Refused):
    """The SASL mechanism is not offered here."""

    code = 33


class IllegalSaslState(Refused):
    """The request does not fit the state of authentication."""

    code = 34


class UnsupportedVersion(Refused):
    """This version of the API is not served here."""

    code = 35


class TopicAlreadyExists(Refused):
    """There is a topic of this name already."""

    code = 36


class InvalidPartitions(Refused):
    """The number of partitions is not valid."""

    code = 37


class InvalidReplicationFactor(Refused):
    """The replication factor is below 1 or above the number of brokers."""

    code = 38


class InvalidReplicaAssignment(Refused):
    """The replica assignment is not valid."""

    code = 39


class InvalidConfiguration(Refused):
    """A configuration key or value is not valid."""

    code = 40


class InvalidRequest(Refused):
    """The request contradicts itself or lacks something."""

    code = 42


class UnsupportedForMessageFormat(Refused):
    """The format of the records does not support the request."""

    code = 43


class PolicyViolation(Refused):
    """The request breaks a policy of the broker."""

    code = 44


class OutOfOrderSequence(Refused):
    """A batch of an idempotent producer came before the one it follows."""

    code = 45


class DuplicateSequence(Refused):
    """A batch of an idempotent producer is already in the log, too far back to name its offset."""

    code = 46


class InvalidTxnState(Refused):
    """The transaction is not in a state that allows this."""

    code = 48


class InvalidTxnTimeout(Refused):
    """The transaction timeout is above transaction.max.timeout.ms."""

    code = 50


class TransactionalIdAuthorizationFailed(Refused):
    """Not authorized for the transactional id."""

    code = 53


class SecurityDisabled(Refused):
    """Security features are switched off."""

    code = 54


class OperationNotAttempted(Refused):
    """Not tried, because another part of the request failed."""

    code = 55


class LogDirNotFound(Refused):
    """The broker has no such log directory."""

    code = 57


class SaslAuthenticationFailed(Refused):
    """Authentication failed."""

    code = 58


class ReassignmentInProgress(Refused):
    """A reassignment of partitions is under way."""

    code = 60


class DelegationTokenAuthDisabled(Refused):
    """Delegation tokens are not enabled."""

    code = 61


class DelegationTokenNotFound(Refused):
    """There is no such delegation token."""

    code = 62


class DelegationTokenOwnerMismatch(Refused):
    """The principal is neither owner nor renewer of the delegation token."""

    code = 63


class DelegationTokenRequestNotAllowed(Refused):
    """Delegation tokens cannot be asked for on this connection."""

    code = 64


class DelegationTokenAuthorizationFailed(Refused):
    """Not authorized for the delegation tokens."""

    code = 65


class DelegationTokenExpired(Refused):
    """The delegation token has expired."""

    code = 66


class InvalidPrincipalType(Refused):
    """The type of principal is not supported."""

    code = 67


class GroupNotEmpty(Refused):
    """The group still has members."""

    code = 68


class GroupIdNotFound(Refused):
    """There is no such group."""

    code = 69


class TopicDeletionDisabled(Refused):
    """Topics may not be deleted here: delete.topic.enable is false."""

    code = 73


class UnsupportedCompressionType(Refused):
    """This version of the API cannot carry the compression of the records."""

    code = 76


class GroupMaxSizeReached(Refused):
    """The group is full."""

    code = 81


class NoReassignmentInProgress(Refused):
    """No reassignment of partitions is under way."""

    code = 85


class GroupSubscribedToTopic(Refused):
    """The group is subscribed to the topic, so its offsets cannot be deleted."""

    code = 86


class InvalidRecord(Refused):
    """A record does not pass the checks of the broker."""

    code = 87


class ResourceNotFound(Refused):
    """There is no such resource."""

    code = 91


class DuplicateResource(Refused):
    """The same resource is named twice."""

    code = 92


class MismatchedEndpointType(Refused):
    """The request was meant for another type of endpoint: a controller, or a broker."""

    code = 114


class UnsupportedEndpointType(Refused):
    """There is no such type of endpoint."""

    code = 115


class UnacceptableCredential(Refused):
    """The credential does not meet the requirements."""

    code = 93


class InvalidUpdateVersion(Refused):
    """The version to update to is not valid."""

    code = 95


class FeatureUpdateFailed(Refused):
    """The features could not be updated."""

    code = 96


class BrokerIdNotRegistered(Refused):
    """No broker with this number is registered."""

    code = 102


class InconsistentClusterId(Refused):
    """This is another cluster."""

    code = 104


class TransactionAbortable(Refused):
    """Something is wrong with the transaction: once it is aborted the producer can go on."""

    code = 120


class TransactionalIdNotFound(Refused):
    """There is no such transactional id."""

    code = 105


class UnreleasedInstanceId(Refused):
    """Another member still holds this group.instance.id."""

    code = 111


class UnsupportedAssignor(Refused):
    """The broker has no such assignor."""

    code = 112


class UnknownSubscriptionId(Refused):
    """There is no such telemetry subscription."""

    code = 117


class TelemetryTooLarge(Refused):
    """The telemetry is larger than the broker takes."""

    code = 118


class InvalidRegistration(Refused):
    """The registration is not valid."""

    code = 119


class InvalidRecordState(Refused):
    """The record is not in a state in which it can be acknowledged."""

    code = 121


class InvalidRegularExpression(Refused):
    """The regular expression is not valid."""

    code = 128


class StreamsInvalidTopology(Refused):
    """The topology of the streams group is not valid."""

    code = 130


class StreamsInvalidTopologyEpoch(Refused):
    """The epoch of the streams group's topology is not valid."""

    code = 131


class StreamsTopologyFenced(Refused):
    """The topology of the streams group is another one by now."""

    code = 132


class IllegalGeneration(Fenced):
    """The generation of the group is another one."""

    code = 22


class UnknownMemberId(Fenced):
    """The group has no such member."""

    code = 25


class RebalanceInProgress(Fenced):
    """The group is rebalancing: join again."""

    code = 27


class InvalidProducerEpoch(Fenced):
    """A producer wrote with an epoch that is no longer the current one."""

    code = 47


class InvalidPidMapping(Fenced):
    """The producer id is not the one assigned to the transactional id."""

    code = 49


class TransactionCoordinatorFenced(Fenced):
    """Another coordinator has taken over the transaction."""

    code = 52


class UnknownProducerId(Fenced):
    """The partition knows nothing of this producer id any more."""

    code = 59


class MemberIdRequired(Fenced):
    """Join again with the member id given here."""

    code = 79


class FencedInstanceId(Fenced):
    """Another member has taken this group.instance.id."""

    code = 82


class ProducerFenced(Fenced):
    """A newer producer has the same transactional id."""

    code = 90


class FencedMemberEpoch(Fenced):
    """The epoch of the member is no longer the current one: give up the partitions and join again."""

    code = 110


class StaleMemberEpoch(Fenced):
    """The epoch of the member is stale: heartbeat first, then try again."""

    code = 113


class FencedStateEpoch(Fenced):
    """The state of the share-partition was initialised anew since."""

    code = 124


class RebootstrapRequired(Fenced):
    """The metadata of the client is stale: start again from the bootstrap servers."""

    code = 129


class UnknownServerError(Failed):
    """The broker met a problem it did not foresee; its log has the details."""

    code = -1


NONE: Final = 0
"""The wire code for success."""


def _by_code() -> dict[int, type[BrokerError]]:
    branches = (Retry, Refused, Fenced, Failed)
    return {leaf.code: leaf for branch in branches for leaf in branch.__subclasses__()}


_CLASSES: Final = _by_code()


def error_for(code: int, message: str = "") -> BrokerError:
    """The exception for a wire code. An unknown code is named in the exception's text."""
    result = _CLASSES.get(code)
    if result is not None:
        return result(message)
    return UnknownServerError(message or f"The broker answered with error code {code}, which is not known here.")

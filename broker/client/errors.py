"""Translates aiokafka's exceptions into ours: one context manager, one table.

BrokerError         an answer of a broker, by its wire code; the classes of broker.errors, re-exported here
ClientTimeout       the cluster did not answer in time: try again later
NotReachable        no broker could be reached at all: try again later
ClientClosed        the client was stopped: create a new one
IllegalUse          calls in an order that cannot work: change the program
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiokafka.errors as library

from broker.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    CorruptMessage,
    FencedInstanceId,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    GroupNotEmpty,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidConfiguration,
    InvalidPartitions,
    InvalidPidMapping,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidReplicationFactor,
    InvalidTopic,
    InvalidTxnState,
    LeaderNotAvailable,
    MemberIdRequired,
    MessageTooLarge,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    OutOfOrderSequence,
    PolicyViolation,
    ProducerFenced,
    RebalanceInProgress,
    RequestTimedOut,
    SaslAuthenticationFailed,
    SecurityDisabled,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    UnknownMemberId,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    error_for,
)
from tidegate.kit.errors import RetriableError, TidegateError, UsageError

__all__ = [
    "BrokerError",
    "ClientClosed",
    "ClientTimeout",
    "ClusterAuthorizationFailed",
    "ConcurrentTransactions",
    "CoordinatorNotAvailable",
    "CorruptMessage",
    "FencedInstanceId",
    "GroupAuthorizationFailed",
    "GroupIdNotFound",
    "GroupNotEmpty",
    "GroupSubscribedToTopic",
    "IllegalGeneration",
    "IllegalUse",
    "InconsistentGroupProtocol",
    "InvalidConfiguration",
    "InvalidPartitions",
    "InvalidPidMapping",
    "InvalidProducerEpoch",
    "InvalidRecord",
    "InvalidReplicationFactor",
    "InvalidTopic",
    "InvalidTxnState",
    "LeaderNotAvailable",
    "MemberIdRequired",
    "MessageTooLarge",
    "NotCoordinator",
    "NotLeaderOrFollower",
    "NotReachable",
    "OffsetOutOfRange",
    "OutOfOrderSequence",
    "PolicyViolation",
    "ProducerFenced",
    "RebalanceInProgress",
    "RequestTimedOut",
    "SaslAuthenticationFailed",
    "SecurityDisabled",
    "TopicAlreadyExists",
    "TopicAuthorizationFailed",
    "UnknownMemberId",
    "UnknownServerError",
    "UnknownTopicOrPartition",
    "UnsupportedVersion",
    "error_for",
    "translated",
    "translating",
]


class ClientTimeout(RetriableError):
    """The cluster did not answer in time."""


class NotReachable(RetriableError):
    """No broker could be reached."""


class ClientClosed(TidegateError):
    """The client was stopped and takes nothing more."""


class IllegalUse(UsageError):
    """The calls came in an order that cannot work."""


_TABLE: Final[tuple[tuple[type[BaseException], type[TidegateError]], ...]] = (
    (library.CommitFailedError, IllegalGeneration),
    (library.ProducerClosed, ClientClosed),
    (library.ConsumerStoppedError, ClientClosed),
    (library.KafkaTimeoutError, ClientTimeout),
    (TimeoutError, ClientTimeout),
    (library.KafkaConnectionError, NotReachable),
    (library.NodeNotReadyError, NotReachable),
    (library.StaleMetadata, NotReachable),
    (library.NoBrokersAvailable, NotReachable),
    (library.MessageSizeTooLargeError, MessageTooLarge),
    (library.RecordTooLargeError, MessageTooLarge),
    (library.IllegalOperation, IllegalUse),
    (library.IllegalStateError, IllegalUse),
    (library.UnsupportedVersionError, IllegalUse),
)
"""The first class that an exception is an instance of decides.

A broker's answers are translated by their code before this.
"""


def translated(error: BaseException, about: str = "") -> BaseException:
    """Our error for one of aiokafka's; any other is returned unchanged. ``about`` describes the operation."""
    if isinstance(error, TidegateError):
        return error
    told = f"{about}: {_words(error)}" if about else _words(error)
    if isinstance(error, library.ProducerFenced):
        return error_for(90, told)
    if isinstance(error, library.BrokerResponseError) and error.errno is not None:
        return error_for(error.errno, told)
    for theirs, ours in _TABLE:
        if isinstance(error, theirs):
            return ours(told)
    if isinstance(error, library.KafkaError):
        return BrokerError(told)
    return error


def _words(error: BaseException) -> str:
    if isinstance(error, library.TopicAuthorizationFailedError):  # its text is the name of the topic
        return "the user has no right to the topic"
    text = "; ".join(str(argument) for argument in error.args if argument)
    return text or getattr(error, "description", "") or type(error).__name__


@contextmanager
def translating(about: str = "") -> Iterator[None]:
    """Run aiokafka code and translate its exceptions, ``from`` the original."""
    try:
        yield
    except (library.KafkaError, library.ConsumerStoppedError, library.IllegalOperation, TimeoutError) as error:
        raise translated(error, about) from error

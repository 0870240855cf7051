"""Access checks before an operation: operation, resource and principal."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from broker.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from broker.protocol.access_codes import Operation, ResourceType
from broker.security.principal import Principal

__all__ = [
    "CLUSTER",
    "CLUSTER_NAME",
    "NOT_ASKED",
    "OPERATIONS",
    "Authorizer",
    "Operation",
    "Resource",
    "ResourceType",
    "denied",
]


class Resource(NamedTuple):
    type: ResourceType
    name: str


OPERATIONS: Final = {
    ResourceType.TOPIC: (3, 4, 5, 6, 7, 8, 10, 11),
    ResourceType.GROUP: (3, 6, 8, 10, 11),
    ResourceType.CLUSTER: (5, 7, 8, 9, 10, 11, 12),
}
"""The operations on a resource that clients can ask about (``AclEntry.supportedOperations``)."""

NOT_ASKED: Final = -(1 << 31)
"""``authorized_operations`` in answers to clients that did not ask for them."""

CLUSTER_NAME: Final = "kafka-cluster"
CLUSTER: Final = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


class Authorizer(Protocol):
    """Decides on access. Runs on the broker's event loop, so that a decision must be a lookup in memory."""

    def allows(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool: ...

    def allows_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there could be a resource of the type, existing or not, on which the operation is allowed."""
        ...

    def refused(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> None:
        """Called when a client is refused an operation."""
        ...


def denied(operation: Operation, resource: Resource, principal: Principal) -> BrokerError:
    """The error for a client that lacks the permission."""
    text = f"{principal} may not {operation.name.replace('_', ' ').lower()} {resource.type.name.lower()} {resource.name!r}."
    return _DENIALS.get(resource.type, ClusterAuthorizationFailed)(text)


_DENIALS: Final[dict[ResourceType, type[BrokerError]]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
}

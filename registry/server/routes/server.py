"""``/`` and ``/v1/metadata``: information about the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from registry.log.errors import NotCaughtUp
from registry.server.routes.call import Call
from registry.server.routes.endpoint import Endpoint, WithStatus

__all__ = ["CONFLUENT_VERSION", "endpoints"]

CONFLUENT_VERSION: Final = "8.5.0"
"""The release of Confluent's registry with this API. Clients read it to know which requests they can send."""


def endpoints(cluster_id: str, group_id: str) -> Sequence[Endpoint]:
    """``cluster_id`` is the Kafka cluster's, ``group_id`` names the registries that share a log."""

    def get_root_resource(_: Call) -> Any:
        """An empty answer, which shows that the server is up."""
        return {}

    def post_root_resource(_: Call) -> Any:
        """An empty answer, which shows that the server is up."""
        return {}

    def get_cluster_id(_: Call) -> Any:
        """The ids of the Kafka cluster and of the registry."""
        clusters = {"kafka-cluster": cluster_id, "schema-registry-cluster": group_id}
        return {"scope": {"path": [], "clusters": clusters}}

    def get_schema_registry_server_version(_: Call) -> Any:
        """The release of Confluent's registry with this API."""
        return {"version": CONFLUENT_VERSION, "commitId": "tidegate"}

    def get_schema_registry_server_deployment(_: Call) -> Any:
        """The attributes of the deployment: always empty."""
        return {"attributes": []}

    async def get_health(call: Call) -> Any:
        """200 if the whole schema log was read, so that answers are current; otherwise 503 with the reason."""
        try:
            await call.registry.require_caught_up()
        except NotCaughtUp as error:
            return WithStatus(503, {"status": "unhealthy", "message": error.message})
        return {"status": "healthy", "message": "The registry has read the whole schema log."}

    metadata = "/v1/metadata"
    return (
        Endpoint("GET", "/", get_root_resource, "object", cached=True),
        Endpoint("POST", "/", post_root_resource, "object", cached=True),
        Endpoint("GET", "/health", get_health, "object"),
        Endpoint("GET", metadata + "/id", get_cluster_id, "ServerClusterId", cached=True),
        Endpoint(
            "GET",
            metadata + "/version",
            get_schema_registry_server_version,
            "SchemaRegistryServerVersion",
            cached=True,
        ),
        Endpoint(
            "GET",
            metadata + "/deployment",
            get_schema_registry_server_deployment,
            "SchemaRegistryDeployment",
            cached=True,
        ),
    )

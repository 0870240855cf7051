"""The Kafka clients of a process under the exporters' names of their JMX groups: network, fetches, group coordinators."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from connect.metrics.families import Families

__all__ = ["add_clients", "clients_of_process"]

_DOMAINS: Final = {"admin": "admin-client", "consumer": "consumer", "member": "connect", "producer": "producer"}
"""The JMX domain of a client, which also begins the names of its groups. Members keep workers in their group."""

Group = tuple[str, str | None, Mapping[str, float]]
"""A JMX group without ``-metrics``, its broker if it has one, and its attributes."""


def clients_of_process() -> list[list[Any]]:
    """The measurements of every client of this process as JSON: kind, client id, groups."""
    network_of_clients = sys.modules.get("broker.client.network")
    if network_of_clients is None:  # no client was used, so the library is not loaded for this
        return []
    measures: list[list[Any]] = []
    for client in network_of_clients.client_measures():
        domain = _DOMAINS[client.kind]
        network = client.network() | (client.sending() if client.kind == "producer" else {})
        groups: list[Group] = [(domain, None, network)]
        groups += [(f"{domain}-node", node, values) for node, values in client.nodes().items()]
        if client.kind == "consumer":
            groups += [(f"{domain}-fetch-manager", None, client.fetching())]
        if client.kind in ("consumer", "member"):
            groups += [(f"{domain}-coordinator", None, client.coordinating())]
        measures.append([client.kind, client.client_id, groups])
    return measures


def add_clients(families: Families, clients: Iterable[Sequence[Any]], version: str) -> None:
    """Add clients from ``clients_of_process``. Clients of one kind with the same id are summed."""
    merged: dict[tuple[str, str, str, str | None], dict[str, float]] = {}
    for kind, client_id, groups in clients:
        for group, node, values in groups:
            seen = merged.setdefault((kind, client_id, group, node), {})
            for name, value in values.items():
                seen[name] = _combined(name, seen.get(name), value)
    for kind, client_id in {key[:2]: None for key in merged}:
        domain = _DOMAINS[kind].replace("-", "_")
        about = {"client_id": client_id, "client_type": domain, "version": version}
        if kind != "member":  # the worker itself reports this for its own
            for family in ("app_info", "app"):  # newer exporters reserve "info"
                families.sample(f"kafka_{domain}_{family}", 1, about)
    for (kind, client_id, group, node), values in merged.items():
        families.client(_DOMAINS[kind], group, values, client_id, node)


def _combined(name: str, first: float | None, other: float) -> float:
    if first is None or name.endswith(("-max", "-avg")):
        return max(first or 0.0, other)
    return first + other

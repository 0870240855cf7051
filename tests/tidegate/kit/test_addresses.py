"""Ports that are free when a server binds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.kit.addresses import free_ports

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_ports_are_different_free_and_none_that_the_system_gives_out() -> None:
    ports = free_ports(["127.0.0.1"] * 20)
    assert len(set(ports)) == 20
    if _RANGE.exists():
        first, last = map(int, _RANGE.read_text().split())
        assert not [port for port in ports if first <= port <= last]


def test_a_host_that_is_not_this_machine_is_an_error() -> None:
    with pytest.raises(OSError, match="Cannot assign|not valid|can't assign"):
        free_ports(["192.0.2.1"])

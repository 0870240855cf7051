"""Hosts that are network namespaces on a bridge, all of them within one namespace that has no way out of the machine."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Host", "Network", "apart", "why_not"]

_APART = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def apart(command: Sequence[str]) -> list[str]:
    """A command in namespaces for network, mounts and processes: all that it starts ends with it."""
    return [*_APART, *command]


def why_not() -> str | None:
    """Why no network can be made here; None if one can be."""
    if missing := [program for program in ("unshare", "nsenter", "ip") if shutil.which(program) is None]:
        return f"there is no {' or '.join(missing)}"
    script = "mount -t tmpfs tmpfs /mnt && ip link add br0 type bridge && ip link add v0 type veth peer name v1"
    tried = subprocess.run(apart(["sh", "-c", script]), capture_output=True, text=True, check=False)
    return f"namespaces can't be made: {tried.stderr.strip()}" if tried.returncode else None


class Host:
    """A namespace with an address; ``cut`` unplugs it: packets to and from it are lost, and nobody is told."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.address, self._link = name, f"10.77.0.{number}", f"v{number}"
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        atexit.register(self._holder.kill)
        while os.readlink(f"/proc/{self._holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            pass  # until unshare has done its work
        _ip(f"link add {self._link} type veth peer name eth0 netns {self._holder.pid}")
        _ip(f"link set {self._link} master bridge up")
        for what in ("link set lo up", f"address add {self.address}/24 dev eth0", "link set eth0 up"):
            subprocess.run(self.inside(["ip", *what.split()]), check=True)

    def inside(self, command: Sequence[str]) -> list[str]:
        return ["nsenter", "--target", str(self._holder.pid), "--net", "--", *command]

    def cut(self) -> None:
        _ip(f"link set {self._link} down")

    def join(self) -> None:
        _ip(f"link set {self._link} up")


class Network:
    """The bridge. Its own address, of which tests are clients, is 10.77.0.1."""

    def __init__(self) -> None:
        assert not _routes(), "run me by `apart`"
        _ip("link set lo up")
        _ip("link add bridge type bridge")
        _ip("address add 10.77.0.1/24 dev bridge")
        _ip("link set bridge up")
        self._hosts = 0

    def host(self, name: str) -> Host:
        self._hosts += 1
        return Host(name, 10 + self._hosts)


def _routes() -> list[str]:
    return Path("/proc/net/route").read_text().splitlines()[1:]


def _ip(arguments: str) -> None:
    done = subprocess.run(["ip", *arguments.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"ip {arguments}: {done.stderr}")

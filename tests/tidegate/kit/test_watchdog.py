"""Watchdog notifications in systemd's protocol."""

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from tidegate.kit.watchdog import Listener, Notifier


@pytest.fixture
def manager():
    """A socket as systemd's, at a path that is short enough for one."""
    folder = Path(tempfile.mkdtemp())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(folder / "notify"))
        sock.settimeout(60)
        yield sock
    shutil.rmtree(folder)


def test_the_watchdog_notifies_twice_per_interval(manager):
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "20000"})
    notifier.say("READY=1")
    assert manager.recv(100) == b"READY=1"

    async def some():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                saying = asyncio.ensure_future(notifier.keep_saying())
                for _ in range(5):
                    assert await asyncio.to_thread(manager.recv, 100) == b"WATCHDOG=1"
                saying.cancel()

    asyncio.run(some())


@pytest.mark.skipif(not os.path.exists("/proc/net/unix"), reason="abstract sockets are Linux'")
def test_systemd_may_listen_on_an_abstract_socket():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0tidegate-test-{os.getpid()}")
        sock.settimeout(60)
        Notifier({"NOTIFY_SOCKET": f"@tidegate-test-{os.getpid()}"}).say("READY=1")
        assert sock.recv(100) == b"READY=1"


def test_an_unread_notification_socket_blocks_nothing(manager):
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    for _ in range(2_000):
        notifier.say("WATCHDOG=1" * 100)
    Notifier({"NOTIFY_SOCKET": "/nowhere"}).say("READY=1")
    Notifier({}).say("READY=1")
    asyncio.run(Notifier({}).keep_saying())


def test_a_listener_hears_what_a_notifier_says():
    with contextlib.closing(Listener()) as listener:
        notifier = Notifier(listener.environment(60))
        assert listener.silent_s() == 0
        notifier.say("STATUS=starting")
        assert listener.silent_s() == 0, "nothing is asked of what is not ready"
        notifier.say("READY=1")
        assert listener.silent_s() < 60
        notifier = Notifier(listener.environment(60))
        assert listener.silent_s() == 0, "the next start is another process"

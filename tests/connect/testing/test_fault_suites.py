"""The suites that kill and stop find a connector that loses rows, and their tools work."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from connect.testing import Forwarder
from connect.testing.interposed import LineCounter


def test_a_sink_that_says_too_early_that_rows_are_safe_is_found(tidegate_broker):
    suite = Path(__file__).with_name("late_sink.py")
    options = ["-q", "-p", "no:cacheprovider", "-k", "stopped_in_the_middle_of_put"]
    command = [sys.executable, "-m", "pytest", *options, str(suite)]
    environment = os.environ | {"BOOTSTRAP_SERVERS": tidegate_broker.bootstrap_servers}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=suite.parents[3], timeout=200)
    assert result.returncode == 1, result.stdout
    assert "and these rows are not there: [" in result.stdout


def test_lines_of_the_files_meant_are_counted_and_others_not():
    def counted():
        total = 0
        for n in range(3):
            total += len(os.path.join("a", str(n)))
        return total

    at = []
    counter = LineCounter([__file__], lambda: at.append(counter.lines), 3)
    with counter.counting():
        counted()
    assert counter.lines == 1 + 4 + 3 + 1 and at == [3]
    assert sys.gettrace() is None or "LineCounter" not in repr(sys.gettrace())


def test_one_connection_of_two_is_cut_and_then_the_other():
    with socket.create_server(("127.0.0.1", 0)) as server, Forwarder.to(server.getsockname()[1]) as forwarder:
        clients, servers = [], []
        for n in range(2):
            clients.append(socket.create_connection(("127.0.0.1", forwarder.port), 10))
            servers.append(server.accept()[0])
            clients[n].sendall(b"x")
            assert servers[n].recv(1) == b"x"
        forwarder.cut_next()
        assert clients[1].recv(1) == b""
        clients[0].sendall(b"y")
        assert servers[0].recv(1) == b"y"
        forwarder.cut_next()
        assert clients[0].recv(1) == b""
        for each in (*clients, *servers):
            each.close()

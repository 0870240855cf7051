"""Prints three free ports as variables of the shell. In earnest the sources listen on 514, 8125 and 4318."""

import socket
from contextlib import ExitStack

with ExitStack() as stack:
    for name in ("SYSLOG_PORT", "STATSD_PORT", "OTLP_PORT"):
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        print(f"export {name}={listening.getsockname()[1]}")

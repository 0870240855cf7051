"""Connections to MySQL and MariaDB through PyMySQL, according to a ``jdbc:`` URL's parameters."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, Final

from connectors.sql.urls import Database

__all__ = ["LOST_CONNECTION", "abort_mysql", "connect_mysql"]

LOST_CONNECTION: Final = frozenset(
    {1040, 1053, 1079, 1152, 1159, 1160, 1161, 1205, 1213, 1927, 2002, 2003, 2006, 2013, 2055}
)
"""Error codes after which a retry may succeed later: lost or full connections, locks, deadlocks."""


def connect_mysql(database: Database, **options: Any) -> Any:
    """A connection to the first host that responds; its session's time zone is UTC. Raises PyMySQL's errors."""
    import pymysql

    parameters = database.parameters
    tls: dict[str, Any] = {}
    mode = parameters.get("ssl_mode", "")
    if mode in ("verify_ca", "verify_identity"):
        tls = {
            "ssl_ca": parameters.get("ssl_ca"),
            "ssl_verify_cert": True,
            "ssl_verify_identity": mode.endswith("identity"),
        }
    elif mode == "required":
        import ssl

        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        tls = {"ssl": context}
    elif mode == "disabled":
        tls = {"ssl_disabled": True}
    variables = parameters.get("session_variables")
    arguments = {
        "user": database.user,
        "password": database.password.reveal() if database.password is not None else "",
        "database": database.name or None,
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": int(parameters.get("connect_timeout", "10")),
        "init_command": "SET SESSION time_zone = '+00:00'" + (f", {variables}" if variables else ""),
    }
    if "read_timeout" in parameters:
        arguments["read_timeout"] = int(parameters["read_timeout"])
    for host, port in database.hosts[:-1]:
        try:
            return pymysql.connect(host=host, port=port, **arguments | tls | options)
        except pymysql.err.OperationalError as error:
            if error.args[0] not in LOST_CONNECTION:
                raise
    host, port = database.hosts[-1]
    return pymysql.connect(host=host, port=port, **arguments | tls | options)


def abort_mysql(connection: Any) -> None:
    """Called from another thread: makes a connection's running call end as if the connection were lost."""
    sock: socket.socket | None = getattr(connection, "_sock", None)
    if sock is not None:
        with suppress(OSError):  # it was closed meanwhile
            sock.shutdown(socket.SHUT_RDWR)

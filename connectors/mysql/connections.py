"""The only module that imports the driver: connections, and the binary log as a stream of events."""

from __future__ import annotations

import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pymysql
from pymysql.constants import COMMAND

from connect.api import ConnectError, RetriableConnectError, parse
from connectors.mysql.binlog.gtid import MariaDbGtids, MySqlGtids
from connectors.mysql.config import MySqlConfig
from connectors.sql.mysql import LOST_CONNECTION, abort_mysql
from tidegate.kit.tls import TlsKeys, client_context

__all__ = ["Binlog", "Server", "connect", "database_errors"]

_HEARTBEAT_MS: Final = 1000
_CHUNK: Final = 256 * 1024
_WHOLE: Final = 0xFFFFFF
_WRITE_S: Final = 3600
"""How long a server waits while data that it sends is not read."""
_SESSION: Final = (
    f"SET SESSION time_zone = '+00:00', net_write_timeout = {_WRITE_S}",
    "SET SESSION sql_mode = REPLACE(REPLACE(@@sql_mode, 'ANSI_QUOTES', ''), 'NO_BACKSLASH_ESCAPES', '')",
)


@contextmanager
def database_errors(config: MySqlConfig, doing: str) -> Iterator[None]:
    """Convert the driver's errors to ours: lost connections are retriable."""
    try:
        yield
    except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
        text = f"{doing} {config.hostname}:{config.port}: {message_of(error)}"
        code = error.args[0] if error.args else 0
        if isinstance(error, pymysql.err.InterfaceError) or code in LOST_CONNECTION:
            raise RetriableConnectError(text) from error
        raise ConnectError(text) from error
    except pymysql.err.Error as error:
        raise ConnectError(f"{doing} {config.hostname}:{config.port}: {message_of(error)}") from error
    except OSError as error:
        raise RetriableConnectError(f"{doing} {config.hostname}:{config.port}: {error}") from error


def message_of(error: BaseException) -> str:
    return str(error.args[-1]) if error.args else type(error).__name__


def _tls(config: MySqlConfig) -> dict[str, Any]:
    mode = config.ssl_mode.lower()
    if mode in ("disabled", "disable"):
        return {"ssl_disabled": True}
    checking = mode in ("verify_ca", "verify_identity", "verify-ca", "verify-full")
    if not checking and mode == "preferred" and not config.keystore:
        return {}
    stores = {"ssl.truststore.location": config.truststore, "ssl.keystore.location": config.keystore}
    paths = {name: path for name, path in stores.items() if path}
    for name, secret in (("truststore", config.truststore_password), ("keystore", config.keystore_password)):
        if secret is not None:
            paths[f"ssl.{name}.password"] = secret.reveal()
    for name in ("truststore", "keystore"):
        if str(paths.get(f"ssl.{name}.location", "")).endswith((".pem", ".crt", ".cer")):
            paths[f"ssl.{name}.type"] = "PEM"
    context = client_context(parse(TlsKeys, paths), check_host=mode in ("verify_identity", "verify-full"))
    if not checking:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return {"ssl": context}


def connect(config: MySqlConfig) -> Any:
    """A plain connection in autocommit mode. Raises PyMySQL's errors."""
    connection = _open(config, read_timeout=-(-config.query_timeout_ms // 1000) or None)
    with connection.cursor() as cursor:
        for statement in _SESSION:
            cursor.execute(statement)
        for statement in filter(None, (s.strip() for s in (config.initial_statements or "").split(";"))):
            cursor.execute(statement)
    return connection


def _open(config: MySqlConfig, **more: Any) -> Any:
    return pymysql.connect(
        host=config.hostname,
        port=config.port,
        user=config.user,
        password=config.password.reveal() if config.password is not None else "",
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=max(1, config.connect_timeout_ms // 1000),
        **_tls(config),
        **more,
    )


class Server:
    """Queries about the server's state and settings, over one connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.mariadb = "mariadb" in str(self.value("SELECT VERSION()")).lower()

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall())

    def value(self, statement: str, *parameters: Any) -> Any:
        rows = self.rows(statement, *parameters)
        return rows[0][0] if rows else None

    def variable(self, name: str) -> str | None:
        rows = self.rows("SHOW GLOBAL VARIABLES LIKE %s", name)
        return str(rows[0][1]) if rows else None

    def position(self) -> tuple[str, int, str]:
        """The end of the binary log: file, position and, where the server has them, GTIDs.

        Raises ConnectError where the server has no binary log.
        """
        try:
            rows = self.rows("SHOW MASTER STATUS")
        except pymysql.err.ProgrammingError:  # MySQL 8.4
            rows = self.rows("SHOW BINARY LOG STATUS")
        if not rows:
            raise ConnectError("the server writes no binary log: start it with log_bin and binlog_format=ROW")
        file, position = str(rows[0][0]), int(rows[0][1])
        return file, position, self.gtids(rows[0])

    def gtids(self, status: tuple[Any, ...] | None = None) -> str:
        """The GTIDs in the binary log, as text; empty where the server has none."""
        if self.mariadb:
            return str(self.value("SELECT @@GLOBAL.gtid_binlog_pos") or "")
        if str(self.variable("gtid_mode") or "OFF").upper() != "ON":
            return ""
        if status is not None and len(status) > 4:
            return str(status[4] or "").replace("\n", "")
        return str(self.value("SELECT @@GLOBAL.gtid_executed") or "").replace("\n", "")

    def purged(self) -> MySqlGtids:
        """The transactions that a MySQL server has executed and that are no longer in its log."""
        return MySqlGtids(str(self.value("SELECT @@GLOBAL.gtid_purged") or ""))

    def has_file(self, name: str) -> bool:
        return any(row[0] == name for row in self.rows("SHOW BINARY LOGS"))


class Binlog:
    """Events from a position, or after a set of GTIDs. ``checksummed`` events end with four bytes of CRC.

    ``next`` returns events as they arrive. Raises PyMySQL's errors, as its methods do, and EOFError where the server
    ends the stream.
    """

    def __init__(
        self, config: MySqlConfig, *, mariadb: bool, file: str, position: int, gtids: MariaDbGtids | MySqlGtids | None
    ) -> None:
        self._connection = _open(config)
        self._heartbeat_ms = max(1, min(_HEARTBEAT_MS, config.keep_alive_ms // 3))
        self._timeouts = {"read": config.net_read_timeout_s, "write": config.net_write_timeout_s or _WRITE_S}
        try:
            self.checksummed = self._prepare(mariadb, gtids)
            self._register(config.reader_id)
            self._dump(config, mariadb, file, position, gtids)
        except BaseException:
            self._connection._force_close()
            raise
        self._socket = self._connection._sock
        self._buffer = bytearray()
        self._at = 0
        self._heard = time.monotonic()

    @property
    def silent_s(self) -> float:
        """How long the server has sent nothing, not even a heartbeat. To be checked after ``next`` returned None."""
        return time.monotonic() - self._heard

    def _prepare(self, mariadb: bool, gtids: MariaDbGtids | MySqlGtids | None) -> bool:
        names = ("master",) if mariadb else ("master", "source")  # newer servers use the second
        statements = [f"SET SESSION net_{way}_timeout = {s}" for way, s in self._timeouts.items() if s]
        for name in names:
            statements.append(f"SET @{name}_heartbeat_period = {self._heartbeat_ms * 1_000_000}")
            statements.append(f"SET @{name}_binlog_checksum = @@global.binlog_checksum")
        if mariadb:
            statements.append("SET @mariadb_slave_capability = 4")
            if gtids is not None:
                statements.append(f"SET @slave_connect_state = '{gtids}'")
                statements.append("SET @slave_gtid_strict_mode = 0")
                statements.append("SET @slave_gtid_ignore_duplicates = 0")
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            cursor.execute("SELECT @@global.binlog_checksum")
            return str(cursor.fetchone()[0]).upper() == "CRC32"

    def _register(self, server_id: int) -> None:
        body = struct.pack("<I", server_id) + b"\0\0\0" + struct.pack("<HII", 0, 0, 0)
        self._connection._execute_command(COMMAND.COM_REGISTER_SLAVE, body)
        self._connection._read_packet()

    def _dump(
        self, config: MySqlConfig, mariadb: bool, file: str, position: int, gtids: MariaDbGtids | MySqlGtids | None
    ) -> None:
        flags = 2 if mariadb and config.include_query else 0  # ask for annotations
        if isinstance(gtids, MySqlGtids):
            known = gtids.encoded()
            body = struct.pack("<HII", 4, config.reader_id, 0) + struct.pack("<Q", 4)
            self._connection._execute_command(
                COMMAND.COM_BINLOG_DUMP_GTID, body + struct.pack("<I", len(known)) + known
            )
            return
        if gtids is not None:
            file, position = "", 4
        body = struct.pack("<IHI", position, flags, config.reader_id) + file.encode()
        self._connection._execute_command(COMMAND.COM_BINLOG_DUMP, body)

    def next(self, timeout_s: float) -> bytes | None:
        """The next event; None when none arrived in this time.

        Raises EOFError at the end of the stream, and PyMySQL's errors for the server's.
        """
        while True:
            event = self._cut()
            if event is not None:
                return event
            self._socket.settimeout(max(timeout_s, 0.001))
            try:
                data = self._socket.recv(_CHUNK)
            except (TimeoutError, ssl.SSLWantReadError):
                return None
            if not data:
                raise EOFError("the server closed the connection")
            self._heard = time.monotonic()
            if self._at:
                del self._buffer[: self._at]
                self._at = 0
            self._buffer += data

    def _cut(self) -> bytes | None:
        buffer, at = self._buffer, self._at
        size = len(buffer)
        parts: list[bytes] = []
        while at + 4 <= size:
            length = buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16
            end = at + 4 + length
            if end > size:
                return None
            if length == _WHOLE or parts:
                parts.append(bytes(buffer[at + 4 : end]))
                at = end
                if length == _WHOLE:
                    continue
                packet = b"".join(parts)
            else:
                packet = bytes(buffer[at + 4 : end])
            self._at = end
            return self._event(packet)
        return None

    def _event(self, packet: bytes) -> bytes:
        first = packet[0] if packet else 0xFE
        if first == 0:
            return packet[1:]
        if first == 0xFF:
            pymysql.err.raise_mysql_exception(packet)
        raise EOFError("the server ended the stream")

    def abort(self) -> None:
        """Called from another thread: makes the running call end as if the connection were lost."""
        abort_mysql(self._connection)

    def close(self) -> None:
        self._connection._force_close()

"""MySQL with a binary log and global transaction ids, from a Maven artefact; always run as an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers.fetch import require
from tests.servers.process import ServerFailed, ServerProcess, as_user, free_ports

if TYPE_CHECKING:
    import pymysql

__all__ = ["MySqlServer"]


class MySqlServer:
    """A server of its own with the database ``tidegate`` and the user ``root``, who has no password from loopback.

    The data lies in a temporary folder, not below pytest's: those are closed to other users.
    """

    user, database = "root", "tidegate"

    def __init__(self, *settings: str) -> None:
        base = require("mysql")
        user = "nobody" if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-mysql-"))
        data = self._folder / "data"
        (data / "mysql").mkdir(parents=True)
        if user is not None:
            for path in (self._folder, data, data / "mysql"):
                shutil.chown(path, user)
        (self.port,) = free_ports(1)
        common = [
            *(str(base / "bin" / "mysqld"), "--no-defaults", f"--basedir={base}", f"--datadir={data}"),
            f"--tmpdir={self._folder}",  # a server that starts removes every temporary table there, those of others too
            *("--innodb-use-native-aio=0", "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=32M"),
        ]
        scripts = [base / "share" / f"mysql_system_tables{part}.sql" for part in ("", "_data")]
        tables = "USE mysql;\n" + "".join(script.read_text() for script in scripts)
        made = subprocess.run(
            [*common, "--bootstrap"],
            input=tables,
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            **as_user(user),
        )
        if made.returncode:
            raise ServerFailed(f"mysqld --bootstrap ended with status {made.returncode}: {made.stdout}{made.stderr}")
        command = [
            *common,
            *("--bind-address=127.0.0.1", f"--port={self.port}", f"--socket={self._folder}/s.sock"),
            *(f"--pid-file={self._folder}/m.pid", "--server-id=1", "--log-bin=binlog", "--binlog-format=ROW"),
            *("--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates", "--skip-name-resolve"),
            *("--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin", "--max-allowed-packet=64M"),
            *("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", *settings),
        ]
        self.process = ServerProcess("MySQL", command, log=self._folder / "server.log", ready=self._answers, user=user)

    def connect(self, database: str | None = None, *, user: str | None = None, **options: Any) -> pymysql.Connection:
        """A connection in autocommit mode, through PyMySQL."""
        import pymysql

        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=user or self.user,
            database=self.database if database is None else database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=60,
            **options,
        )

    def start(self) -> None:
        self.process.start()
        with self.connect("") as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{self.database}`")

    def stop(self) -> None:
        """Stop the server and delete its data."""
        self.process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        import pymysql

        try:
            with self.connect(""):
                return True
        except pymysql.MySQLError:
            return False

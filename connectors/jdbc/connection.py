"""The connection keys that Confluent's and Aiven's JDBC sources and sinks share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final
from urllib.parse import quote

from connect.api import KeyType, Password, Problem, at_least, config, key, one_of, time_zone
from connectors.sql.urls import Database, parse_jdbc_url

__all__ = ["URL_DOC", "ConnectionKeys"]

URL_DOC = (
    "The database, as a jdbc: URL: jdbc:postgresql://host:5432/name, jdbc:mysql://host:3306/name, "
    "jdbc:mariadb://host:3306/name, jdbc:sqlite:/path/to/file or jdbc:duckdb:/path/to/file."
)
_DIALECTS = (
    *("Db2DatabaseDialect", "MySqlDatabaseDialect", "SybaseDatabaseDialect", "GenericDatabaseDialect"),
    *("OracleDatabaseDialect", "SqlServerDatabaseDialect", "PostgreSqlDatabaseDialect", "SqliteDatabaseDialect"),
    *("DerbyDatabaseDialect", "SapHanaDatabaseDialect", "MockDatabaseDialect", "VerticaDatabaseDialect"),
)
_CREDENTIALS = "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider"

_CLOUD: Final[Mapping[str, tuple[int, str, str, Mapping[str, str]]]] = {
    "postgresql": (5432, "sslmode", "sslrootcert", {}),
    "mysql": (
        3306,
        "sslMode",
        "serverSslCert",
        {"prefer": "PREFERRED", "require": "REQUIRED", "verify-ca": "VERIFY_CA", "verify-full": "VERIFY_IDENTITY"},
    ),
}
"""How Confluent Cloud's keys are turned into a URL: the port, the names of two parameters, and the driver's values for
``ssl.mode``.
"""


@config
class ConnectionKeys:
    """The connection, and settings that apply to both reading and writing."""

    cloud_kind: ClassVar[str] = "postgresql"
    """The kind of database that ``connection.host`` refers to."""

    url: str = key("connection.url", default="", doc=URL_DOC, importance="high", group="Connection", width="LONG")
    user: str | None = key(
        "connection.user",
        default=None,
        doc="Database user; wins over one in the URL.",
        importance="high",
        group="Connection",
    )
    password: Password | None = key(
        "connection.password", default=None, doc="Password of that user.", importance="high", group="Connection"
    )
    credentials_provider: str = key(
        "jdbc.credentials.provider.class",
        default=_CREDENTIALS,
        doc="Where user and password come from: only the default, this connector's own keys.",
        type=KeyType.CLASS,
        importance="low",
        group="Connection",
        check=one_of(_CREDENTIALS),
    )
    attempts: int = key(
        "connection.attempts",
        default=3,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often a task tries to connect before it gives up, or in a sink before that counts as a failed try to write.",
        importance="low",
        group="Connection",
    )
    backoff_ms: int = key(
        "connection.backoff.ms",
        default=10000,
        doc="Milliseconds between these attempts.",
        importance="low",
        group="Connection",
    )
    dialect: str = key(
        "dialect.name",
        default="",
        check=one_of("", *_DIALECTS),
        doc="Accepted for compatibility: the URL decides.",
        importance="low",
        group="Connection",
    )
    host: str = key(
        "connection.host",
        default="",
        doc="Confluent Cloud's keys instead of connection.url: the server's host.",
        group="Connection",
    )
    port: int | None = key("connection.port", default=None, doc="The server's port.", group="Connection")
    database_name: str = key("db.name", default="", doc="The database's name.", group="Connection")
    ssl_mode: str = key(
        "ssl.mode",
        default="prefer",
        check=one_of("prefer", "require", "verify-ca", "verify-full"),
        doc="How TLS is used with connection.host.",
        group="Connection",
    )
    ssl_root: str = key(
        "ssl.rootcertfile",
        default="",
        doc="File with the certificates that servers are checked against, with connection.host.",
        group="Connection",
    )
    timezone: str = key(
        "db.timezone",
        default="UTC",
        check=time_zone(),
        doc="The time zone of timestamps that have none: instants are read and written as a clock there shows them.",
        group="Data mapping",
    )
    calendar: str = key(
        "date.calendar.system",
        default="LEGACY",
        check=one_of("LEGACY", "PROLEPTIC_GREGORIAN"),
        doc="Accepted for compatibility: dates are always of the proleptic Gregorian calendar, which differs from LEGACY "
        "only before 1582-10-15.",
        importance="low",
        group="Data mapping",
    )
    quote_identifiers: str = key(
        "quote.sql.identifiers",
        default="ALWAYS",
        check=one_of("ALWAYS", "NEVER", ignore_case=True),
        doc="Whether names stand in quotes in SQL.",
        group="Data mapping",
    )
    sql_quote_identifiers: bool = key(
        "sql.quote.identifiers",
        default=True,
        doc="Aiven's form of quote.sql.identifiers.",
        importance="low",
        group="Data mapping",
    )

    @property
    def database(self) -> Database:
        """Raises ConnectError for an invalid URL."""
        return parse_jdbc_url(self.jdbc_url, self.user, self.password)

    @property
    def jdbc_url(self) -> str:
        """``connection.url``, or the URL that Confluent Cloud's keys stand for."""
        if self.url:
            return self.url
        port, mode, root, modes = _CLOUD[self.cloud_kind]
        more = f"&{root}={quote(self.ssl_root)}" if self.ssl_root else ""
        location = f"{self.host}:{self.port or port}/{quote(self.database_name, safe='')}"
        return f"jdbc:{self.cloud_kind}://{location}?{mode}={modes.get(self.ssl_mode, self.ssl_mode)}{more}"

    def url_problems(self) -> Iterable[Problem]:
        """Problems with the URL that are found without connecting."""
        if not self.url and not self.host:
            message = "connection.url is empty; it should look like jdbc:postgresql://host:5432/name"
            yield Problem("connection.url", message)

    @property
    def quoting(self) -> bool:
        """Whether names are quoted, from whichever of the two keys is set."""
        return self.sql_quote_identifiers and self.quote_identifiers.upper() == "ALWAYS"

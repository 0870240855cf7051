"""``jdbc:`` URLs of databases that are reached through SQLAlchemy and any installed driver.

Written from the drivers' manuals (Microsoft's JDBC driver, Oracle's thin driver); no connection to these databases was
ever made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from connect.api import ConnectError, Password

__all__ = ["oracle", "sqlserver"]

Parts = tuple[str, tuple[tuple[str, int], ...], str | None, Password | None, dict[str, str]]
"""Name, hosts, user, password and SQLAlchemy's query parameters."""

_ODBC: Final[Mapping[str, str]] = {
    "encrypt": "Encrypt",
    "trustservercertificate": "TrustServerCertificate",
    "hostnameincertificate": "HostNameInCertificate",
    "applicationname": "APP",
    "applicationintent": "ApplicationIntent",
    "multisubnetfailover": "MultiSubnetFailover",
    "workstationid": "WSID",
}
"""Properties of Microsoft's JDBC driver, in lower case, with their names in its ODBC driver."""


def sqlserver(rest: str, user: str | None, password: Password | None) -> Parts:
    """``//host\\instance:port;property=value;...``; a value with semicolons stands in braces."""
    if not rest.startswith("//"):
        raise ConnectError(f"jdbc:sqlserver:{rest!r} should look like jdbc:sqlserver://host:1433;databaseName=name")
    server, _, properties = rest[2:].partition(";")
    options = {
        key.strip().lower(): value[1:-1].replace("}}", "}") if value.startswith("{") else value
        for key, value in re.findall(r"([^=;]+)=(\{(?:[^}]|\}\})*\}|[^;]*)", properties)
    }
    match = re.fullmatch(r"(\[[^\]]+\]|[^:\\\[\]]*)(?:\\([^:]+))?(?::([0-9]{1,5}))?/?", server)
    if match is None:
        raise ConnectError(f"{server!r} is not a host with an optional instance and port, as host\\instance:1433")
    host = match[1] or options.get("servername") or options.get("server") or "localhost"
    instance = match[2] or options.get("instancename")
    port = _port(match[3] or options.get("portnumber") or options.get("port") or "1433")
    if instance and not match[3]:
        host, port = f"{host}\\{instance}", 0
    query = {"driver": "ODBC Driver 18 for SQL Server"}
    for key, value in options.items():
        if key in _ODBC:
            query[_ODBC[key]] = {"true": "yes", "false": "no"}.get(value.lower(), value)
    if options.get("integratedsecurity", "").lower() == "true":
        query["Trusted_Connection"] = "yes"
    name = options.get("databasename") or options.get("database") or ""
    return (
        name,
        ((host, port),),
        user or options.get("user") or options.get("username"),
        _secret(password, options),
        query,
    )


def oracle(rest: str, user: str | None, password: Password | None) -> Parts:
    """``thin:[user/password]@`` and then ``//host:port/service``, ``host:port:sid``, ``host:port/service``,
    ``tcps://host:port/service``, ``(DESCRIPTION=...)`` or the name of a place in tnsnames.ora."""
    kind, _, address = rest.partition(":")
    if kind.lower() not in ("thin", "oci"):
        raise ConnectError(
            f"jdbc:oracle:{kind}: is not known; it should look like jdbc:oracle:thin:@//host:1521/service"
        )
    credentials, _, where = address.rpartition("@")
    if credentials:
        given_user, _, given_password = credentials.partition("/")
        user, password = user or given_user, password or (Password(given_password) if given_password else None)
    where, _, parameters = where.partition("?") if not where.startswith("(") else (where, "", "")
    encrypted, where = where.lower().startswith("tcps:"), re.sub(r"^(tcps?:)?//", "", where, flags=re.IGNORECASE)
    match = re.fullmatch(r"(\[[^\]]+\]|[^:/()\[\]]+):([0-9]{1,5})(?:([:/])([^:/]+)(?::[a-z]+)?)?", where)
    if match is None:
        return "", ((where, 0),), user, password, {}
    host, port, name = match[1].strip("[]"), _port(match[2]), match[4] or ""
    if encrypted:
        security = "".join(f"({key.upper()}={value})" for key, value in parse_qsl(parameters))
        descriptor = (
            f"(DESCRIPTION=(ADDRESS=(PROTOCOL=tcps)(HOST={host})(PORT={port}))(CONNECT_DATA=(SERVICE_NAME={name}))"
            f"{f'(SECURITY={security})' if security else ''})"
        )
        return "", ((descriptor, 0),), user, password, {}
    if match[3] == ":":
        return name, ((host, port),), user, password, {}
    return "", ((host, port),), user, password, {"service_name": name} if name else {}


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise ConnectError(f"{text!r} is not a port: it should be a number from 1 to 65535")
    return int(text)


def _secret(password: Password | None, options: Mapping[str, str]) -> Password | None:
    return password or (Password(options["password"]) if "password" in options else None)

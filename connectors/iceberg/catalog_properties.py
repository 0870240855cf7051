"""Catalog properties as configurations for Iceberg's Java catalogs write them, in the form of pyiceberg's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from connect.api import Problem

__all__ = ["catalog_problems", "catalog_properties"]

_IMPLEMENTATIONS: Final = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog": "dynamodb",
    "org.apache.iceberg.gcp.bigquery.BigQueryMetastoreCatalog": "bigquery",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
    "org.apache.iceberg.nessie.NessieCatalog": "nessie",
}
_TYPES: Final = ("rest", "jdbc", "sql", "hive", "glue", "dynamodb", "bigquery")
_REFUSED: Final = {
    "hadoop": "a catalog of folders has no commit that is safe from a second writer: take type=jdbc with "
    "uri=jdbc:sqlite:/path/catalog.db, or a REST catalog",
    "nessie": "Nessie is reached by its REST catalog: set type=rest and uri=http://HOST:19120/iceberg",
}
_FILE_IO: Final = ("S3FileIO", "GCSFileIO", "ADLSFileIO", "HadoopFileIO", "ResolvingFileIO", "OSSFileIO")
_LOADED: Final = frozenset(("py-catalog-impl", "py-io-impl", "auth", "s3.retry-strategy-impl"))
_HADOOP: Final = {
    "fs.s3a.endpoint": "s3.endpoint",
    "fs.s3a.access.key": "s3.access-key-id",
    "fs.s3a.secret.key": "s3.secret-access-key",
    "fs.s3a.session.token": "s3.session-token",
    "fs.s3a.endpoint.region": "s3.region",
}
_DRIVERS: Final = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mysql+pymysql"}


def _type_of(properties: Mapping[str, str]) -> str:
    if implementation := properties.get("catalog-impl"):
        return _IMPLEMENTATIONS.get(implementation, implementation)
    return properties.get("type", "rest" if "uri" in properties else "").lower()


def catalog_properties(given: Mapping[str, str], hadoop: Mapping[str, str]) -> dict[str, str]:
    """The properties that pyiceberg's ``load_catalog`` takes."""
    made = {_HADOOP[name]: value for name, value in hadoop.items() if name in _HADOOP}
    made |= {name: value for name, value in given.items() if name not in ("catalog-impl", "io-impl", "type")}
    kind = _type_of(given)
    made["type"] = "sql" if kind == "jdbc" else kind
    if region := made.get("client.region"):
        made.setdefault("s3.region", region)
    if path_style := made.pop("s3.path-style-access", ""):
        made.setdefault("s3.force-virtual-addressing", "false" if path_style.lower() == "true" else "true")
    if kind == "jdbc":
        made["uri"] = _database_url(made.get("uri", ""), made.pop("jdbc.user", ""), made.pop("jdbc.password", ""))
    if urlsplit(made.get("warehouse", "")).scheme == "file" or made.get("warehouse", "").startswith("/"):
        made["py-io-impl"] = "connectors.iceberg.local_files.SyncedFileIO"
    endpoint = made.get("s3.endpoint", "")
    if endpoint and "://" not in endpoint:
        made["s3.endpoint"] = f"https://{endpoint}"
    return made


def _database_url(url: str, user: str, password: str) -> str:
    """SQLAlchemy's form of a ``jdbc:`` URL."""
    plain = url.removeprefix("jdbc:")
    if plain.startswith("sqlite:"):
        path = plain.removeprefix("sqlite:")
        return plain if path.startswith("//") else f"sqlite:///{path}"
    scheme, _, rest = plain.partition("://")
    words = ":".join(quote(word, safe="") for word in (user, password) if word)
    return f"{_DRIVERS.get(scheme, scheme)}://{f'{words}@' if user else ''}{rest}"


def catalog_problems(given: Mapping[str, str]) -> Iterable[Problem]:
    if not given:
        yield Problem(
            "iceberg.catalog.type", "iceberg.catalog.* has to say where the catalog is: type, uri and warehouse"
        )
        return
    kind = _type_of(given)
    name = "iceberg.catalog.catalog-impl" if "catalog-impl" in given else "iceberg.catalog.type"
    if kind in _REFUSED:
        yield Problem(name, f"{name}: {_REFUSED[kind]}")
    elif kind not in _TYPES:
        shown = f"{name} is {kind!r}" if kind else f"{name} is missing"
        yield Problem(name, f"{shown}; there are {', '.join(_TYPES)}")
    elif kind in ("rest", "jdbc", "sql", "hive") and not given.get("uri"):
        yield Problem("iceberg.catalog.uri", f"a catalog of type {kind} needs iceberg.catalog.uri")
    elif kind in ("jdbc", "sql") and not given.get("warehouse"):
        text = (
            f"a catalog of type {kind} needs iceberg.catalog.warehouse, such as s3://bucket/warehouse or file:///path"
        )
        yield Problem("iceberg.catalog.warehouse", text)
    elif kind == "jdbc" and not _is_database(given["uri"]):
        text = "it should look like jdbc:postgresql://host:5432/name or jdbc:sqlite:/path/catalog.db"
        yield Problem("iceberg.catalog.uri", f"iceberg.catalog.uri is {given['uri']!r}; {text}")
    for loaded in sorted(given.keys() & _LOADED):
        text = f"iceberg.catalog.{loaded} names Python code, which a configuration cannot load: leave it out"
        yield Problem(f"iceberg.catalog.{loaded}", text)
    if (io := given.get("io-impl")) and io.rpartition(".")[2] not in _FILE_IO:
        text = f"iceberg.catalog.io-impl is {io!r}, which cannot be loaded here: leave it out, the warehouse's address decides"
        yield Problem("iceberg.catalog.io-impl", text)


def _is_database(url: str) -> bool:
    scheme = urlsplit(url.removeprefix("jdbc:")).scheme
    return scheme.partition("+")[0] in ("sqlite", "postgresql", "mysql", "mariadb")

"""Catalogs and tables by pyiceberg, and its errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from connect.api import ConnectError, MissingExtra, RetriableConnectError, TidegateError, require_file
from connectors.iceberg.catalog_properties import catalog_properties
from connectors.iceberg.config import IcebergSinkConfig
from connectors.tables.errors import CommitConflict

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

__all__ = ["Tables", "iceberg_errors"]

_FOR_GOOD: Final = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|"
    r"HTTP status 40[0135]"
)
"""Errors of an object store, as pyarrow writes them, that a repeated request would get again."""
_TIMEOUT_S: Final = (10, 60)
"""Until a REST catalog takes a connection, and until it says more."""
_NEEDS: Final = {"hive": "thrift", "glue": "boto3", "dynamodb": "boto3", "bigquery": "google-cloud-bigquery"}


class Tables:
    """The tables of a catalog."""

    def __init__(self, config: IcebergSinkConfig, *, creates: bool = True) -> None:
        """Without ``creates`` a catalog of SQLite whose file does not exist yet has no tables, and stays so."""
        self._config, self._creates = config, creates
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """It connects at its first use."""
        if self._catalog is None:
            self._catalog = _loaded(self._config)
        return self._catalog

    def load(self, name: str) -> Table | None:
        """The table as it is now; None if there is none."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if not self._creates and (file := _database_file(self._config)) is not None and not file.exists():
            return None
        with iceberg_errors("load", name):
            try:
                table = self.catalog.load_table(name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
        self._require_files(table)
        return table

    def create(self, name: str, schema: Any, spec: Any) -> Table:
        """Create a table and its namespace. Another task may have been faster: then the table is its."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        namespace = tuple(name.split(".")[:-1])
        with iceberg_errors("create", name):
            if not self.catalog.namespace_exists(namespace):
                with suppress(NamespaceAlreadyExistsError):
                    self.catalog.create_namespace(namespace)
            try:
                made = self.catalog.create_table(
                    name, schema, partition_spec=spec, properties=self._config.create_props
                )
            except TableAlreadyExistsError:
                made = self.catalog.load_table(name)
        self._require_files(made)
        return made

    def names(self) -> Iterator[str]:
        """The names of all tables of the catalog."""
        with iceberg_errors("list", self._config.catalog_name):
            for namespace in self.catalog.list_namespaces():
                for identifier in self.catalog.list_tables(namespace):
                    yield ".".join(identifier)

    def close(self) -> None:
        catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()

    def _require_files(self, table: Table) -> None:
        for location in (
            table.location(),
            table.properties.get("write.data.path", ""),
            table.properties.get("write.metadata.path", ""),
        ):
            _require_local(location)


def _require_local(location: str) -> None:
    parts = urlsplit(location)
    if location and parts.scheme in ("", "file"):
        try:
            require_file(unquote(parts.path), writing=True)
        except PermissionError as error:
            raise ConnectError(str(error.strerror)) from error


def _database_file(config: IcebergSinkConfig) -> Path | None:
    """The file of a catalog of SQLite. Raises ConnectError where its folder does not exist."""
    uri = catalog_properties(config.catalog, config.hadoop).get("uri", "")
    if not uri.startswith("sqlite:///"):
        return None
    file = Path(uri.removeprefix("sqlite:///").partition("?")[0])
    if not file.parent.is_dir():
        raise ConnectError(f"the folder {file.parent} of the catalog's file {file.name} does not exist: create it")
    return file


def _loaded(config: IcebergSinkConfig) -> Catalog:
    _database_file(config)
    properties = catalog_properties(config.catalog, config.hadoop)
    if "/" in properties.get("warehouse", ""):
        _require_local(properties["warehouse"])
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise MissingExtra("Iceberg tables", "iceberg") from error
    with iceberg_errors("open", f"catalog {config.catalog_name}"):
        try:
            if properties["type"] == "rest":
                return _rest_catalog(config.catalog_name, properties)
            return load_catalog(config.catalog_name, **properties)
        except ImportError as error:
            package = _NEEDS.get(properties["type"], str(error))
            raise ConnectError(
                f"a catalog of type {properties['type']} needs a package: pip install {package}"
            ) from error


def _rest_catalog(name: str, properties: dict[str, str]) -> Catalog:
    """A REST catalog whose requests have a time limit, which pyiceberg's have not: a task must not wait for ever."""
    from pyiceberg.catalog.rest import RestCatalog
    from requests import PreparedRequest, Response, Session
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        def send(self, request: PreparedRequest, *args: Any, **more: Any) -> Response:
            return super().send(request, *args, **more | {"timeout": more.get("timeout") or _TIMEOUT_S})

    class Limited(RestCatalog):
        def _create_session(self) -> Session:
            session = super()._create_session()
            for scheme in ("http://", "https://"):
                session.mount(scheme, Adapter())
            return session

    return Limited(name, **properties)


@contextmanager
def iceberg_errors(doing: str, what: str) -> Iterator[None]:
    """Turns errors of catalogs and file stores into ours."""
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    try:
        yield
    except TidegateError:
        raise
    except (CommitFailedException, ValidationException) as error:
        raise CommitConflict(f"cannot {doing} {what}: {_first_line(error)}") from error
    except Exception as error:
        kind = RetriableConnectError if _may_pass(error) else ConnectError
        raise kind(f"cannot {doing} {what}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _may_pass(error: BaseException) -> bool:
    """Whether the same may succeed later."""
    from pyiceberg.exceptions import (
        CommitStateUnknownException,
        ServerError,
        ServiceUnavailableError,
        TooManyRequestsError,
        WaitingForLockException,
    )
    from requests import RequestException
    from sqlalchemy.exc import OperationalError

    if isinstance(error, PermissionError | FileNotFoundError | NotADirectoryError):
        return False
    if isinstance(error, RequestException):
        return error.response is None or error.response.status_code >= 500
    if isinstance(error, OSError):
        return _FOR_GOOD.search(str(error)) is None
    if isinstance(error, OperationalError):
        text = str(error)
        return "no such table" not in text and "unable to open" not in text and "password" not in text
    return isinstance(
        error,
        CommitStateUnknownException
        | ServerError
        | ServiceUnavailableError
        | TooManyRequestsError
        | WaitingForLockException,
    )

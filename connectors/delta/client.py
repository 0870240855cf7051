"""Tables by delta-rs, and its errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from connect.api import ConnectError, MissingExtra, RetriableConnectError, TidegateError, require_file
from connectors.delta.config import DeltaSinkConfig
from connectors.tables.errors import CommitConflict

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake import Schema as DeltaSchema

__all__ = ["Tables", "delta_errors", "single_try"]

_CONFLICT: Final = re.compile(
    r"max(?:imum)? commit attempts|commit conflict|version \d+ already exists|already exists|concurrent|conflict",
    re.IGNORECASE,
)
_FOR_GOOD: Final = re.compile(
    r"status code: (?:301|40[01345])\b|permission denied|NoSuchBucket|InvalidAccessKeyId|SignatureDoesNotMatch|"
    r"not supported|unsupported|schema mismatch|schema error",
    re.IGNORECASE,
)
"""Errors, as delta-rs and its object stores write them, that the same request would get again."""


class Tables:
    """The tables of a configuration."""

    def __init__(self, config: DeltaSinkConfig) -> None:
        self._config = config

    def load(self, name: str) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        uri, options = self._place(name)
        if (folder := _folder(uri)) is not None and not (folder / "_delta_log").is_dir():
            return None
        with delta_errors("load", name):
            from deltalake import DeltaTable
            from deltalake.exceptions import TableNotFoundError

            try:
                return DeltaTable(uri, storage_options=dict(options))
            except TableNotFoundError:
                return None

    def create(self, name: str, schema: DeltaSchema, partition_by: tuple[str, ...]) -> DeltaTable:
        """Create a table. Another task may have been faster: then the table is its."""
        uri, options = self._place(name)
        with delta_errors("create", name):
            from deltalake import DeltaTable

            return DeltaTable.create(
                uri,
                schema,
                mode="ignore",
                partition_by=list(partition_by),
                name=name,
                configuration=dict(self._config.create_props),
                storage_options=dict(options),
            )

    def _place(self, name: str) -> tuple[str, Mapping[str, str]]:
        uri, options = self._config.settings(name).uri, self._config.storage_options
        folder = _folder(uri)
        for path in ([] if folder is None else [str(folder)]) + [each for each in options.values() if each[:1] == "/"]:
            _require(path)
        return (str(folder) if folder is not None else uri), options


def _folder(uri: str) -> Path | None:
    """The folder of a table on this machine's disk."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme in ("", "file") else None


def _require(path: str) -> None:
    try:
        require_file(path, writing=True)
    except PermissionError as error:
        raise ConnectError(str(error.strerror)) from error


def single_try(metadata: Mapping[str, str], versions: Mapping[str, int]) -> Any:
    """The properties of a commit that is made as the next version of the table, or not at all.

    ``versions`` are those of applications: a connector's offsets.
    """
    from deltalake import CommitProperties, Transaction

    transactions = [Transaction(app_id, version) for app_id, version in versions.items()]
    return CommitProperties(custom_metadata=dict(metadata), max_commit_retries=0, app_transactions=transactions)


@contextmanager
def delta_errors(doing: str, what: str) -> Iterator[None]:
    """Turns errors of tables and file stores into ours."""
    try:
        yield
    except TidegateError:
        raise
    except ImportError as error:
        raise MissingExtra("Delta tables", "delta") from error
    except Exception as error:
        from deltalake.exceptions import CommitFailedError, DeltaError

        text = _first_line(error)
        if isinstance(error, CommitFailedError) or (isinstance(error, DeltaError) and _CONFLICT.search(text)):
            raise CommitConflict(f"cannot {doing} {what}: {text}") from error
        may_pass = isinstance(error, OSError) and not isinstance(error, PermissionError | FileNotFoundError)
        may_pass = (may_pass or isinstance(error, DeltaError)) and _FOR_GOOD.search(str(error)) is None
        kind = RetriableConnectError if may_pass else ConnectError
        raise kind(f"cannot {doing} {what}: {text}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's, which is no Exception
            raise
        raise RetriableConnectError(f"cannot {doing} {what}: delta-rs failed: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__

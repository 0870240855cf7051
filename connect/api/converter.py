"""Converters between the bytes of the log and columns of a schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from connect.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from registry.client.rehearsal import Rehearsal

__all__ = ["Converted", "Converter", "ConverterContext", "HeaderConverter"]


@dataclass(frozen=True, slots=True)
class ConverterContext:
    """The context of a converter. Its own keys contain everything else, for example the registry's URL."""

    is_key: bool
    connector: str = ""
    rehearsals: list[Rehearsal] | None = None
    """If this is a list, nothing may be written, not even to a schema registry; would-be registrations are added to the
    list (``registry.client.rehearsal``).
    """


@dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """A run of rows with one schema; None if there is no schema (``values`` are JSON texts then)."""

    schema: Schema | None
    values: pa.Array


class Converter(ABC):
    """Created once for the keys and once for the values of a task. Used only on that task's thread."""

    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any, context: ConverterContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        """Convert a column to the log's bytes (a binary column). Null stays null, which is a tombstone.

        Raises DataError with the invalid rows, RetriableConnectError if a service did not answer.
        """

    @abstractmethod
    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        """Convert a binary column to columns: runs in order, whose lengths add up to ``len(data)``.

        Raises the errors of ``from_connect``.
        """

    def close(self) -> None:
        """Release the converter's resources."""


class HeaderConverter(ABC):
    """Created once for a task and used on its thread. A ``Converter`` can be configured as a header converter too."""

    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any, context: ConverterContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """The log's bytes for a value in its schema's Python form (without a schema: JSON's). Raises DataError."""

    @abstractmethod
    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Schema and value of the log's bytes. Raises DataError."""

    def close(self) -> None:
        """Release the converter's resources."""

"""Converters: between the bytes of the log and columns of a schema."""

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
    """What a converter may need beside its own keys. ``registry_url`` and the like come from the converter's keys."""

    is_key: bool
    connector: str = ""
    rehearsals: list[Rehearsal] | None = None
    """Where this is a list nothing may be written, to a schema registry neither; what would be registered goes here
    (``registry.client.rehearsal``)."""


@dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """A run of rows with one schema; None where there is no schema (``values`` are JSON texts then)."""

    schema: Schema | None
    values: pa.Array


class Converter(ABC):
    """Made once for the keys and once for the values of a task; used from that task's thread only."""

    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any, context: ConverterContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        """The log's bytes (a binary column) for a column; a null stays null, which is a tombstone.

        Raises DataError with the rows at fault, RetriableConnectError where a service did not answer.
        """

    @abstractmethod
    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        """Columns for a binary column: runs in order, their lengths adding up to ``len(data)``.

        Raises as ``from_connect``.
        """

    def close(self) -> None:
        """Release what the converter holds."""


class HeaderConverter(ABC):
    """Made once for a task, used from its thread. A ``Converter`` may be named where one of these is asked for."""

    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any, context: ConverterContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """The log's bytes for a value in the Python form of its schema (without one: as JSON has it). Raises DataError."""

    @abstractmethod
    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Schema and value of the log's bytes. Raises DataError."""

    def close(self) -> None:
        """Release what the converter holds."""

"""Converters: between the bytes of the log and columns of a schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from connect.api.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["Converted", "Converter", "ConverterContext"]


@dataclass(frozen=True, slots=True)
class ConverterContext:
    """What a converter may need beside its own keys. ``registry_url`` and the like come from the converter's keys."""

    is_key: bool
    connector: str = ""


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

"""What a fetch brought, as the consumers hand it out: batch by batch, record by record, or in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.client.batches import Fetched

if TYPE_CHECKING:
    from broker.client.columns import Columns

__all__ = ["FetchedBatches"]


@dataclass(frozen=True, slots=True)
class FetchedBatches(Fetched):
    """What one fetch brought of one partition, as ``Fetched`` says, to be had in columns too."""

    def columns(self) -> Columns:
        """The records as Arrow columns."""
        from broker.client.columns import decode_batches  # here: pyarrow and numpy are a while to import

        return decode_batches(self)

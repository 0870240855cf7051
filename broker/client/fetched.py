"""The result of a fetch as consumers return it: by batch, by record, or in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.client.batches import Fetched

if TYPE_CHECKING:
    from broker.client.columns import Columns

__all__ = ["FetchedBatches"]


@dataclass(frozen=True, slots=True)
class FetchedBatches(Fetched):
    """The batches of one partition that one fetch returned; ``columns`` decodes them into Arrow."""

    def columns(self) -> Columns:
        """The records as Arrow columns."""
        from broker.client.columns import decode_batches  # local, because pyarrow and numpy are slow to import

        return decode_batches(self)

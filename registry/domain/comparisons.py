"""Compares schemas in a thread: a comparison may take seconds, because alternatives are tried in pairs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Final

from registry.errors import RegistryError
from registry.formats.compatibility import Level, Previous
from registry.formats.parsed import ParsedSchema

__all__ = ["Comparisons"]

_LONG: Final = 100_000
"""The product of two texts' lengths above which a comparison may take more than a tenth of a second."""
_KEPT: Final = 32


class Comparisons:
    """Compares schemas, and caches the last results from the thread."""

    def __init__(self, thread: Executor) -> None:
        self._thread = thread
        self._outcomes: OrderedDict[
            tuple[int, int, bool], tuple[ParsedSchema, ParsedSchema, list[str] | RegistryError]
        ] = OrderedDict()
        """By the identities of both schemas, which are stored with the result so that the identities stay valid."""

    def problems(self, reader: ParsedSchema, writer: ParsedSchema, *, lenient: bool) -> list[str]:
        """Like ``reader.reading_problems``, with the same errors."""
        known = self._outcomes.get((id(reader), id(writer), lenient))
        if known is None:
            return reader.reading_problems(writer, lenient=lenient)
        if isinstance(known[2], RegistryError):
            raise known[2]
        return known[2]

    async def compare_aside(
        self, level: Level, new: ParsedSchema, previous: Sequence[Previous], *, lenient: bool
    ) -> None:
        """Compute in the thread what ``compatibility.check`` will need, as far as it may take long."""
        for old in reversed(previous):
            if new.schema_type != old.schema.schema_type:
                return
            if len(new.canonical) * len(old.schema.canonical) < _LONG:
                continue
            pairs = [(old.schema, new)] * level.forward + [(new, old.schema)] * level.backward
            for reader, writer in pairs:
                if await self._compare(reader, writer, lenient):
                    return  # nothing else is needed once there are problems

    async def _compare(self, reader: ParsedSchema, writer: ParsedSchema, lenient: bool) -> bool:
        key = (id(reader), id(writer), lenient)
        if key not in self._outcomes:

            def work() -> list[str] | RegistryError:
                try:
                    return reader.reading_problems(writer, lenient=lenient)
                except RegistryError as error:
                    return error

            outcome = await asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._outcomes[key] = (reader, writer, outcome)
            if len(self._outcomes) > _KEPT:
                self._outcomes.popitem(last=False)
        entry = self._outcomes.get(key)
        return entry is not None and bool(entry[2])

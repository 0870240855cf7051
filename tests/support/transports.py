"""A transport without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["MemoryTransport"]


class MemoryTransport(asyncio.Transport):
    """The server's end of a connection; ``written`` has the pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

"""Calls a trigger: in a separate thread, with a mark on disk while it runs."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from events.triggers.api import Trigger, TriggerContext, TriggerEvent

__all__ = ["Mark", "call"]


class Mark:
    """A file with the batch that a call is processing.

    A remaining file means that the process died during that call: killed, or crashed by the trigger itself. Without it
    such a trigger would crash its process forever.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / name

    def read(self) -> int | None:
        """The first replay id of an unfinished batch."""
        try:
            return int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def set(self, replay_id: int) -> None:
        self._path.write_text(str(replay_id))

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)


async def call(trigger: Trigger, events: Sequence[TriggerEvent], context: TriggerContext) -> BaseException | None:
    """Call the function and wait. Returns its exception, including SystemExit.

    The thread is a daemon, so that a call that never returns does not keep the process alive.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[BaseException | None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(error)

    def run() -> None:
        raised: BaseException | None = None
        try:
            made: Any = trigger.function(events, context)
            if inspect.iscoroutine(made):
                asyncio.run(made)
        except BaseException as error:  # noqa: BLE001 - whatever a user's function raises is its batch's failure
            raised = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, raised)

    threading.Thread(target=run, name=f"trigger {trigger.name}", daemon=True).start()
    return await ended

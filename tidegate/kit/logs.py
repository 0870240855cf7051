"""Structured logs on standard error, one event per line: JSON for machines, columns on a terminal.

In a process that does not ``configure`` them, such as a command or a notebook, lines are records of Python's ``logging``.
"""

from __future__ import annotations

import contextvars
import logging
import sys
import threading
from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from typing import Any, Final, Literal

# structlog draws tracebacks with rich if that is installed, and loads it at once: 0.1 s of processor time for each of
# the services, whose logs are JSON. If rich is loaded already, it is used.
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
import structlog  # noqa: E402

if sys.modules["rich"] is None:
    del sys.modules["rich"]

from tidegate.kit.log_throttle import Throttle  # noqa: E402
from tidegate.kit.scrubbing import scrubbed_event  # noqa: E402

__all__ = ["Format", "about", "configure", "get_logger", "threads_inherit"]

_TALKATIVE = ("aiokafka", "apscheduler", "asyncio", "kafka", "urllib3", "uvicorn")
"""Libraries whose INFO is our DEBUG."""
_REPEATED = "aiokafka.cluster"
"""Its errors are about topics that do not exist: our clients raise them, or wait and say so once, and it says so at each look."""

Format = Literal["json", "console"]


def _as_record(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """For structlog: a record of ``logging`` that says ``what happened (connector=orders, task=1)``, with a traceback below it. It is
    marked ``structured``, as no line of a library is.
    """
    text, trace = str(event.pop("event", "")), event.pop("exception", None)
    facts = ", ".join(f"{name}={value}" for name, value in event.items())
    line = f"{text} ({facts})" if facts else text
    return (f"{line}\n{trace}" if trace else line,), {"extra": {"structured": True}}


if not structlog.is_configured():  # structlog's default is standard output, where commands write JSON
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.filter_by_level,
            structlog.processors.format_exc_info,
            scrubbed_event,
            _as_record,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def configure(level: str = "INFO", format: Format | None = None) -> None:  # noqa: A002
    """Set up logging for this process, once, at its start. Libraries' ``logging`` records use the same output.

    ``format`` defaults to columns on a terminal and JSON elsewhere. Of warnings and errors of one kind at most 20 per
    10 s are written; the next one says how many were ``suppressed``.
    """
    chosen = format or ("console" if sys.stderr.isatty() else "json")
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if chosen == "json" else structlog.dev.ConsoleRenderer()
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.processors.format_exc_info],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, scrubbed_event, renderer],
        )
    )
    handler.addFilter(Throttle())
    for library in _TALKATIVE:
        logging.getLogger(library).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    logging.getLogger(_REPEATED).setLevel(logging.CRITICAL)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module: ``log = logger(__name__)``, then ``log.info("what happened", connector=name)``."""
    logging.getLogger(name)  # structlog makes it at its first line only: it could not be listed before
    bound: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return bound


def about(**facts: Any) -> AbstractContextManager[Any]:
    """Within this context, every line of this thread (or asyncio task) has ``facts``, including libraries' lines.

    A line's own facts take precedence. Coroutines passed to another thread's loop keep them.
    """
    return structlog.contextvars.bound_contextvars(**facts)


_start: Final = threading.Thread.start


def threads_inherit() -> None:
    """Make threads started from now on, in this process, inherit the facts of ``about`` from their starter."""

    def start(thread: threading.Thread) -> None:
        context, run = contextvars.copy_context(), thread.run
        thread.run = lambda: context.run(run)  # type: ignore[method-assign]
        _start(thread)

    threading.Thread.start = start  # type: ignore[method-assign, assignment]

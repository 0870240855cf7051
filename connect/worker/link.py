"""The messages between a worker and a task host: JSON objects, one a line, over a pair of sockets.

{"call": NAME, "id": N, "with": {...}}        asks for an answer; both ends may ask
{"id": N, "result": ...}                      the answer
{"id": N, "error": TEXT, "status": HTTP, "retriable": BOOL}   the answer when it went wrong
{"event": NAME, "with": {...}}                news, unanswered
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any, Final

from connect.errors import RemoteError
from tidegate.kit.errors import RetriableError, TidegateError
from tidegate.kit.logs import get_logger
from tidegate.kit.scrubbing import Secrets, knowing, noted_config, scrubbed

__all__ = ["ANSWER_S", "MAX_LINE_BYTES", "ThreadedLink", "error_message", "line_of", "raised"]

logger = get_logger(__name__)

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
ANSWER_S: Final = 60.0
"""How long a host waits for the worker's answer; who asks asks again."""


def line_of(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def error_message(error: BaseException) -> dict[str, Any]:
    """The error part of an answer, without the secrets that are known where it was met."""
    if isinstance(error, TidegateError):
        return {"error": scrubbed(str(error)), "status": error.http_status, "retriable": error.retriable}
    return {"error": scrubbed(f"{type(error).__name__}: {error}"), "status": 500}


def raised(message: Mapping[str, Any]) -> RemoteError:
    """The error that an answer carries."""
    error = RemoteError(str(message["error"]), int(message.get("status", 500)))
    error.retriable = bool(message.get("retriable", False))  # type: ignore[misc]
    return error


class ThreadedLink:
    """The host's end. Every request is served in a thread of its own; ``serve`` returns when the worker is gone."""

    def __init__(self, sock: socket.socket, handlers: Mapping[str, Callable[..., Any]]) -> None:
        self._sock, self._handlers = sock, handlers
        self._writing = threading.Lock()
        self._numbers = count(1)
        self._waiting: dict[int, Future[Any]] = {}

    def event(self, name: str, /, **values: Any) -> None:
        """Tell the worker. Returns quietly when it is gone."""
        self._write({"event": name, "with": values})

    def call(self, name: str, /, **values: Any) -> Any:
        """Ask the worker and wait for its answer. Raises RetriableError where none comes in time."""
        future = self.submit(name, **values)
        try:
            return future.result(ANSWER_S)
        except TimeoutError:
            future.cancel()
            raise RetriableError(f"the worker did not answer {name} within {ANSWER_S:g} s") from None

    def submit(self, name: str, /, **values: Any) -> Future[Any]:
        """Ask the worker. Cancel the future to wait no longer; an answer that comes later is dropped."""
        number, future = next(self._numbers), Future[Any]()
        self._waiting[number] = future
        future.add_done_callback(lambda _: self._waiting.pop(number, None))
        self._write({"call": name, "id": number, "with": values})
        return future

    def serve(self) -> None:
        with suppress(ConnectionError), self._sock.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "call" in message:
                    threading.Thread(target=self._answer, args=(message,), name=message["call"], daemon=True).start()
                else:
                    self._take_answer(message)

    def _take_answer(self, message: Mapping[str, Any]) -> None:
        future = self._waiting.pop(message["id"], None)
        if future is None or not future.set_running_or_notify_cancel():
            return  # it came too late
        if "error" in message:
            future.set_exception(raised(message))
        else:
            future.set_result(message.get("result"))

    def _answer(self, message: Mapping[str, Any]) -> None:
        answer: dict[str, Any] = {"id": message["id"]}
        values = message["with"]
        with knowing(Secrets()):
            for properties in (values.get("config"), values.get("properties")):
                noted_config(properties or {})
            try:
                answer["result"] = self._handlers[message["call"]](**values)
            except TidegateError as error:
                answer |= error_message(error)
            except BaseException as error:  # a plugin's own code, SystemExit too: the worker tells whoever asked
                logger.exception("a request to the task host failed", call=message["call"])
                answer |= error_message(error)
        self._write(answer)

    def _write(self, message: Mapping[str, Any]) -> None:
        data = line_of(message)
        with self._writing:
            try:
                self._sock.sendall(data)
            except OSError:  # the worker is gone; ``serve`` notices and ends this process
                return

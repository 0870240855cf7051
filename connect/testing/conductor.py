"""The test's side of an interposed connector: is told of each call of its tasks and decides what happens in it."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

__all__ = ["Conductor", "Hold"]

_USUAL_LINES: Final = 8
"""The assumed middle of a call before one of its kind was observed."""

Act = Callable[[], Literal["go", "kill"]]


@dataclass(slots=True)
class Hold:
    """A call that waits in its middle from ``reached`` on, until ``release``."""

    reached: threading.Event = field(default_factory=threading.Event)
    _go: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self._go.set()

    def __call__(self) -> Literal["go", "kill"]:
        self.reached.set()
        self._go.wait(120)
        return "go"


@dataclass(slots=True)
class _Rule:
    call: str
    part: float
    act: Act
    given: bool = False
    """Whether a call was told the line. A call already running when the rule was created is not the next one."""


class Conductor:
    """Listens on ``port`` of 127.0.0.1. Requested faults happen in the next calls of that name, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._before: Act | None = None
        self._lines: dict[str, int] = {}
        self.done = 0
        """The number of faults that happened."""
        self.calls: list[Mapping[str, Any]] = []
        """All reports in order: ``call``, ``phase``, ``pid``, ``thread``, ``instance`` of the task, ``rows``."""
        conductor = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    answer = conductor._answer(json.loads(line))
                    try:
                        self.wfile.write(json.dumps(answer).encode() + b"\n")
                    except OSError:
                        return

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="conductor", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def within(self, call: str, act: Act, *, part: float = 0.5) -> None:
        """Run ``act`` within the next call of that name: before the line at ``part`` of those that the last such call
        executed, or at the end of a shorter call.

        A ``put`` without rows does not count.
        """
        with self._lock:
            self._rules.append(_Rule(call, part, act))

    def before_each_call(self, act: Act | None) -> None:
        """Run ``act`` before every call but ``stop``; None ends that."""
        with self._lock:
            self._before = act

    def settled(self) -> bool:
        """Whether all requested faults have happened."""
        with self._lock:
            return not self._rules

    def forget(self) -> None:
        with self._lock:
            self._rules.clear()
            self._before = None

    def begun(self, call: str) -> int:
        """How many calls of that name have begun, without counting ``put`` without rows."""
        return sum(
            1 for told in list(self.calls) if told["call"] == call and told["phase"] == "begin" and told["rows"] != 0
        )

    def complaints(self) -> list[str]:
        """Violations of the runtime's contract: one thread for all calls, one call at a time, ``stop`` once and last."""
        complaints: list[str] = []
        threads: dict[str, int] = {}
        running: dict[str, str] = {}
        stopped: set[str] = set()
        for told in list(self.calls):
            task, call = told["instance"], told["call"]
            if told["phase"] == "begin":
                if task in running:
                    complaints.append(f"{call} began while {running[task]} ran")
                if task in stopped:
                    complaints.append(f"{call} came after stop")
                if threads.setdefault(task, told["thread"]) != told["thread"]:
                    complaints.append(f"{call} came from another thread than the calls before")
                running[task] = call
                if call == "stop":
                    stopped.add(task)
            elif told["phase"] == "end":
                running.pop(task, None)
        return complaints

    def _answer(self, told: dict[str, Any]) -> dict[str, Any]:
        phase, call, rows = told["phase"], told["call"], told.get("rows")
        with self._lock:
            self.calls.append(told)
            rule = next((r for r in self._rules if r.call == call and rows != 0), None)
            before = self._before if phase == "begin" and call != "stop" else None
            if phase == "end" and rows != 0 and not told["error"]:
                self._lines[call] = told["lines"]
        if before is not None:
            before()
        if phase == "begin" and rule is not None:
            rule.given = True
            return {"line": max(1, round(rule.part * self._lines.get(call, _USUAL_LINES)))}
        if rule is not None and (phase == "line" or (phase == "end" and rule.given and not told["error"])):
            with self._lock:
                self._rules.remove(rule)
                self.done += 1
            return {"do": rule.act()}
        return {}

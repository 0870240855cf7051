"""A scenario: requests in order, sent to two brokers in parallel, with values from earlier responses filled in."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.compare import Difference, Rules
from tests.conformance.differential.exchange import CLOSED, Peer

__all__ = ["Coverage", "Run", "Scenario", "Step", "ask", "setup"]

_SETTLE_S: Final = 2.0
"""Apache Kafka's broker hears of changes some time after its controller: an answer that differs is asked for anew this long."""
_SETUP_S: Final = 20.0
"""And a setup step as long as this."""


@dataclass(frozen=True)
class Step:
    """One request of every run of a scenario. ``body`` has the fields of all versions; a version uses those that it
    has.

    A function is called with the known values. A text ``$name`` is replaced by the value that the run or an earlier
    step's ``keep`` gave the name, also inside longer text.
    """

    api: ApiKey
    body: Mapping[str, Any]
    version: int | None = None
    """None: the version the scenario is run for; for another API than the scenario's, its latest."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Names bound to what stands in the answer: ``{"member": "member_id", "id": "topics.0.topic_id"}``."""
    until: tuple[str, Any] | None = None
    """A setup step is repeated until this path has this value."""
    by: str = ""
    """The scenario's connection on which it is sent."""
    once: bool = False
    """Asking anew would change something: the first answers are compared."""
    answered: bool = True
    """False: only sent; a later step with ``receive`` waits for the answer."""
    receive: bool = False


@dataclass(frozen=True)
class Scenario:
    """Steps for every version of an API in ``versions`` (None: of all it has)."""

    name: str
    api: ApiKey
    steps: tuple[Step, ...]
    versions: range | None = None


def ask(api: ApiKey, body: Mapping[str, Any] | None = None, **more: Any) -> Step:
    """A request that changes nothing, in the version under test."""
    return Step(api, body or {}, **more)


def setup(api: ApiKey, version: int, body: Mapping[str, Any], **more: Any) -> Step:
    """A request that prepares something: its answer is compared too, but it counts for its own API at this version."""
    return Step(api, body, version=version, **more)


class Coverage:
    """The versions of APIs that were answered without error, and with one."""

    def __init__(self) -> None:
        self.good: set[tuple[ApiKey, int]] = set()
        self.bad: set[tuple[ApiKey, int]] = set()

    def note(self, api: ApiKey, version: int, answer: Any) -> None:
        (self.bad if answer is CLOSED or set(_errors(answer)) - {"none"} else self.good).add((api, version))


def _errors(value: Any) -> list[str]:
    if isinstance(value, dict):
        codes = [code for name, code in value.items() if name == "error_code" or name.endswith("_error_code")]
        return codes + [error for code in value.values() for error in _errors(code)]
    if isinstance(value, list):
        return [error for code in value for error in _errors(code)]
    return []


class Run:
    """One scenario in one version against both brokers."""

    def __init__(
        self,
        scenario: Scenario,
        version: int,
        ours: Peer,
        theirs: Peer,
        rules: Rules,
        coverage: Coverage,
        latest: Mapping[ApiKey, int],
    ) -> None:
        """``latest`` are the APIs that ours serves, with their latest version."""
        self._scenario = scenario
        self._version = version
        self._peers = (ours, theirs)
        self._rules = rules
        self._coverage = coverage
        self._latest = latest
        unique = f"{re.sub(r'[^a-z0-9]+', '-', scenario.name)}-v{version}"
        self._known: tuple[dict[str, Any], dict[str, Any]] = ({"u": unique}, {"u": unique})

    def differences(self) -> list[Difference]:
        """All differences of the responses; stops at a step whose API our broker does not serve."""
        differences: list[Difference] = []
        for step in self._scenario.steps:
            if step.api not in self._latest:
                break
            differences += self._step(step)
        return differences

    def _step(self, step: Step) -> list[Difference]:
        version = step.version
        if version is None:
            version = self._version if step.api is self._scenario.api else self._latest[step.api]
        if not step.answered:
            for peer, known in zip(self._peers, self._known, strict=True):
                peer.send(step.api, version, _filled(step.body, known), by=step.by)
            return []
        deadline = time.monotonic() + _SETTLE_S
        while True:
            answers = [
                self._answer(step, version, peer, known) for peer, known in zip(self._peers, self._known, strict=True)
            ]
            differences = self._rules.differences(step.api.title, version, self._scenario.name, *self._named(answers))
            if not differences or step.once or step.receive or time.monotonic() > deadline:
                break
            time.sleep(0.03)
        self._coverage.note(step.api, version, answers[1])
        for answer, known in zip(answers, self._known, strict=True):
            known |= {name: at(answer, path) for name, path in step.keep.items()}
        return differences

    def _answer(self, step: Step, version: int, peer: Peer, known: Mapping[str, Any]) -> Any:
        if step.receive:
            return peer.receive(step.api, version, by=step.by)
        deadline = time.monotonic() + _SETUP_S
        while True:
            answer = peer.ask(step.api, version, _filled(step.body, known), by=step.by)
            if step.until is None or at(answer, step.until[0]) == step.until[1]:
                return answer
            assert time.monotonic() < deadline, (
                f"{self._scenario.name}: {step.api.title} v{version} ended with {answer}"
            )
            time.sleep(0.01)

    def _named(self, answers: list[Any]) -> list[Any]:
        """Answers with what the brokers bound to names, and may name differently, under these names."""
        return [_renamed(answer, known) for answer, known in zip(answers, self._known, strict=True)]


def at(answer: Any, path: str) -> Any:
    """The value at a path such as ``topics.0.name``; None where there is none."""
    for part in path.split("."):
        try:
            answer = answer[int(part)] if isinstance(answer, list) else answer[part]
        except (KeyError, IndexError, TypeError):
            return None
    return answer


_NAME: Final = re.compile(r"\$(\w+)")


def _filled(value: Any, known: Mapping[str, Any]) -> Any:
    if callable(value):
        return value(known)
    if isinstance(value, str):
        whole = _NAME.fullmatch(value)
        if whole:
            return known[whole[1]]
        return _NAME.sub(lambda match: str(known[match[1]]), value)
    if isinstance(value, Mapping):
        return {name: _filled(item, known) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, known) for item in value]
    return value


def _renamed(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return next((f"${name}" for name, bound in known.items() if bound == value and name != "u" and value), value)
    if isinstance(value, dict):
        return {name: _renamed(item, known) for name, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, known) for item in value]
    return value

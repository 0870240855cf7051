"""The faults of the platform, drawn from a seed."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from tests.proofs.chaos.scene import Party, Scene
from tests.servers.process import wait_until

__all__ = ["SETTLED_S", "Faults", "fill"]

SETTLED_S: Final = 120
"""A platform that takes longer than this to recover has not."""


@dataclass
class Faults:
    """``strike`` returns when the fault is over."""

    scene: Scene
    chance: random.Random
    log: Callable[[str], None]
    happened: Counter[str] = field(default_factory=Counter)
    spans: list[tuple[str, float, float]] = field(default_factory=list)
    """Name of the party, and from when to when it could not answer."""

    def strike(self) -> None:
        kinds: dict[str, tuple[int, Callable[[], str]]] = {
            "kill": (4, self._kill),
            "freeze": (3, self._freeze),
            "cut off": (4, self._cut),
            "two at once": (2, self._two),
            "rolling restart": (1, self._roll),
            "full disk": (1, self._fill),
            "task hosts killed": (1, self._kill_hosts),
            "all brokers frozen": (1, self._freeze_all),
        }
        kind = self.chance.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
        began = time.monotonic()
        what = kinds[kind][1]()
        self.happened[kind] += 1
        self.log(f"{kind}: {what}, {time.monotonic() - began:.1f} s")

    def _any(self, *kinds: str) -> Party:
        kind = self.chance.choice(kinds or ("broker", "registry", "connect", "connect", "events", "database", "s3"))
        return self.chance.choice(self.scene.of(kind))

    def _away(self, party: Party, began: float) -> None:
        self.spans.append((party.name, began, time.monotonic()))

    def _kill(self) -> str:
        party, began = self._any(), time.monotonic()
        party.kill()
        time.sleep(self.chance.choice([0, 1, 5, 15]))
        party.process.start()
        self._away(party, began)
        return party.name

    def _freeze(self) -> str:
        party, began = self._any(), time.monotonic()
        party.signal_all(signal.SIGSTOP)
        time.sleep(self.chance.choice([2, 8, 15, 25]))
        party.signal_all(signal.SIGCONT)
        self._away(party, began)
        return party.name

    def _cut(self) -> str:
        party, began = self._any(), time.monotonic()
        party.host.cut()
        time.sleep(self.chance.choice([2, 8, 20, 35]))
        party.host.join()
        self._away(party, began)
        return party.name

    def _two(self) -> str:
        """Of two kinds, so that a quorum of brokers is left."""
        kinds = self.chance.sample(["broker", "registry", "connect", "events", "database", "s3"], 2)
        first, second = (self._any(kind) for kind in kinds)
        began = time.monotonic()
        first.kill()
        second.signal_all(signal.SIGSTOP)
        time.sleep(self.chance.choice([1, 5, 15]))
        second.signal_all(signal.SIGCONT)
        first.process.start()
        self._away(first, began)
        self._away(second, began)
        return f"{first.name} killed, {second.name} frozen"

    def _roll(self) -> str:
        """A rolling restart of all of a kind, each stopped in order and started when the one before is ready."""
        kind = self.chance.choice(["registry", "connect", "events", "broker"])
        for party in self.scene.of(kind):
            began = time.monotonic()
            party.process.stop()
            party.process.start()
            self._away(party, began)
        return kind

    def _kill_hosts(self) -> str:
        party = self._any("connect")
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(party.process.pid).children():
                child.kill()
        return party.name

    def _fill(self) -> str:
        folder = self.chance.choice([self.scene.disk, self.scene.scratch])
        ballast = folder / "ballast"
        fill(ballast)
        time.sleep(self.chance.choice([3, 10, 20]))
        ballast.unlink()
        return folder.name

    def _freeze_all(self) -> str:
        began, brokers = time.monotonic(), self.scene.of("broker")
        for party in brokers:
            party.signal_all(signal.SIGSTOP)
        time.sleep(self.chance.choice([5, 20, 40]))
        for party in brokers:
            party.signal_all(signal.SIGCONT)
        for party in self.scene.parties:
            self._away(party, began)
        return "all"

    def recovered(self, since: float) -> float:
        """Wait until everything runs and the newest rows have come through; returns the seconds. Raises AssertionError."""
        there = self.scene.progress()
        wrong: list[str] = []

        def settled() -> bool:
            wrong[:] = self.scene.unsettled()
            return not wrong and there()

        try:
            wait_until(settled, "the platform to recover", SETTLED_S, 0.3)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {wrong or 'all tasks run, but rows do not arrive'}") from None
        return time.monotonic() - since


def fill(ballast: Path) -> None:
    """Until nothing more fits."""
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass

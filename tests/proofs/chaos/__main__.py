"""``python -m tests.proofs.chaos SEED SECONDS FOLDER [ours] [KIND,KIND]``, in namespaces of its own: one seed, over Apache Kafka or our
broker, with all kinds of faults or these; FOLDER/figures.json says how it went.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.proofs.chaos.faults import Faults
from tests.proofs.chaos.judge import judge
from tests.proofs.chaos.load import Load
from tests.proofs.chaos.scene import Scene

_DEADLINE_S: Final = 15.0
"""A registration is answered within kafkastore.timeout.ms, 10 s, on a busy machine a little later."""


def main(seed: int, seconds: float, folder: Path, *, ours: bool, only: Sequence[str]) -> None:
    chance, began = random.Random(seed), time.monotonic()

    def log(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} {text}", flush=True)

    scene = Scene(folder, ours=ours)
    recoveries: list[float] = []
    try:
        scene.start()
        scene.prepare()
        log("started")
        faults = Faults(scene, chance, log, only)
        load = Load(scene, seed)
        faults.recovered(time.monotonic())
        log("settled")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(chance.uniform(1, 8))
            faults.strike()
            if chance.random() < 0.6 or time.monotonic() > end:
                recoveries.append(faults.recovered(time.monotonic()))
                log(f"recovered after {recoveries[-1]:.1f} s")
        load.end()
        log("load ended")
        figures: dict[str, Any] = judge(scene, load)
        unsettled = scene.unsettled()
        assert not unsettled, unsettled
        late = [
            answer
            for answer in load.answers
            if answer.took_s > _DEADLINE_S
            and not any(
                name == answer.host and start < answer.began + answer.took_s and answer.began < stop
                for name, start, stop in faults.spans
            )
        ]
        assert not late, f"registrations answered late: {late[:5]}"
        worst_of = {
            "registration": max(wait for _, wait in load.waits),
            "publish": max(wait for _, wait in load.events.waits),
        }
        figures |= {
            "faults": dict(faults.happened),
            "recoveries": [round(each, 1) for each in recoveries],
            "median recovery s": round(statistics.median(recoveries), 1),
            "worst recovery s": round(max(recoveries), 1),
            "worst wait s": {kind: round(wait, 1) for kind, wait in worst_of.items()},
            "subscriber": dict(load.events.broken),
        }
        (folder / "figures.json").write_text(json.dumps(figures))
        log(json.dumps(figures))
    finally:
        scene.stop()


if __name__ == "__main__":
    number, duration, place, *more = sys.argv[1:]
    kinds = [kind for part in more if part != "ours" for kind in part.split(",")]
    main(int(number), float(duration), Path(place), ours="ours" in more, only=kinds)

"""``python -m bench registry.start``: a log of 100,000 schemas, and how long and how much memory a registry needs for it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Final

from rich.console import Console

from bench.broker.sides import our_broker
from bench.paired import Case, Measured, measure, show
from bench.registry.requests import schema
from bench.registry.sides import Start, karapace, karapace_python, ours
from broker.client import Admin, BatchProducer, ClientConfig, NewTopic

__all__ = ["main"]

SCHEMAS: Final = round(100_000 * float(os.environ.get("BENCH_SCALE", "1")))
VERSIONS: Final = 5
REFERENCE: Final = {"ready s": 9.9, "memory MB": 413.0}
"""Karapace of June 2026 on another day's machine of this kind, for where it does not run."""


async def fill(bootstrap: str, topic: str) -> None:
    """A log as a registry writes it: subjects of five versions, each schema another."""
    config = ClientConfig(bootstrap, {"linger.ms": "5"})
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(topic, 1, 1, {"cleanup.policy": "compact"})])
    async with BatchProducer(config) as producer:
        for number in range(SCHEMAS):
            subject, version = f"topic-{number // VERSIONS}-value", number % VERSIONS + 1
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            text = schema(f"Row{number // VERSIONS}", 5 + version)
            value = {"subject": subject, "version": version, "id": number + 1, "schema": text, "deleted": False}
            data = [json.dumps(part, separators=(",", ":")).encode() for part in (key, value)]
            await producer.enqueue(topic, data[0], data[1], partition=0)
        await producer.flush()


def started(start: Start, folder: Path, bootstrap: str, topic: str) -> Measured:
    last = f"/subjects/topic-{(SCHEMAS - 1) // VERSIONS}-value/versions/{(SCHEMAS - 1) % VERSIONS + 1}"
    with start(folder, bootstrap, topic, last) as side:
        return {"ready s": side.ready_s, "memory MB": side.memory_mb(), "CPU s": side.cpu_s()}


def main(folder: Path, runs: int, console: Console) -> None:
    with our_broker(folder / "broker") as broker:
        address = broker.bootstrap
        for topic in ("_schemas", "_schemas_karapace"):
            asyncio.run(fill(address, topic))
        title = f"{SCHEMAS:,} schemas"
        pairs: list[tuple[Measured, Measured]]
        if karapace_python() is None:
            console.print(
                "KARAPACE_PYTHON names no Python with Karapace: theirs are the figures of reference measurements"
            )
            case = Case(title, lambda: started(ours, folder, address, "_schemas"), lambda: REFERENCE)
            pairs = [({n: mine[n] for n in REFERENCE}, theirs) for mine, theirs in measure(case, runs, console)]
        else:
            case = Case(
                title,
                lambda: started(ours, folder, address, "_schemas"),
                lambda: started(karapace, folder, address, "_schemas_karapace"),
            )
            pairs = measure(case, runs, console)
    show("Registry and Karapace at their start", {title: pairs}, console)

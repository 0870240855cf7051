"""``python -m bench registry.requests``: the seven kinds of requests, 16 kept connections, sent by wrk."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import requests
from rich.console import Console

from bench.broker.sides import our_broker
from bench.paired import Case, Measured, measure, show
from bench.registry.sides import Side, karapace, karapace_python, ours

__all__ = ["main"]

SECONDS: Final = max(1, round(5 * float(os.environ.get("BENCH_SCALE", "1"))))
SUBJECTS: Final = 100
FIGURES: Final = ("requests/s", "p50 ms", "p99 ms")
REFERENCE: Final = {
    "GET /schemas/ids/{id}": (810, 18, 75),
    "GET /subjects/{s}/versions/latest": (802, 18, 76),
    "POST a registered schema": (526, 28, 87),
    "POST /subjects/{s} (lookup)": (509, 29, 88),
    "POST /compatibility": (474, 32, 91),
    "POST a new subject": (257, 62, 124),
    "POST a new version": (186, 83, 151),
}
"""Karapace of June 2026 on another day's machine of this kind (requests/s, p50 and p99 in ms), for where it does not run."""


def schema(name: str, fields: int = 10) -> str:
    kinds = ("long", "string", "double", ["null", "string"])
    members = [
        {"name": f"f{n}", "type": kind} | ({"default": None} if isinstance(kind, list) else {})
        for n, kind in ((n, kinds[n % len(kinds)]) for n in range(fields))
    ]
    return json.dumps({"type": "record", "name": name, "namespace": "bench", "fields": members}, separators=(",", ":"))


def cases(url: str) -> dict[str, list[str]]:
    """Register what the requests are about; the lines for each case."""
    session, ids = requests.Session(), []
    for number in range(SUBJECTS):
        body = {"schema": schema(f"Known{number}")}
        answer = session.post(f"{url}/subjects/known-{number}/versions", json=body, timeout=60)
        ids.append(answer.json()["id"])

    def posts(path: str, text: str = "Known{n}", fields: int = 10) -> list[str]:
        bodies = ((n, json.dumps({"schema": schema(text.format(n=n), fields)})) for n in range(SUBJECTS))
        return [f"POST\t{path.format(n=n)}\t{body}" for n, body in bodies]

    settings = {"compatibility": "NONE"}
    for number in range(SUBJECTS):
        session.put(f"{url}/config/grows-{number}", json=settings, timeout=60)
    return {
        "GET /schemas/ids/{id}": [f"GET\t/schemas/ids/{schema_id}\t" for schema_id in ids],
        "GET /subjects/{s}/versions/latest": [f"GET\t/subjects/known-{n}/versions/latest\t" for n in range(SUBJECTS)],
        "POST a registered schema": posts("/subjects/known-{n}/versions"),
        "POST /subjects/{s} (lookup)": posts("/subjects/known-{n}"),
        "POST /compatibility": posts("/compatibility/subjects/known-{n}/versions/latest", fields=12),
        "POST a new subject": posts("/subjects/new-@N@/versions", "New@N@"),
        "POST a new version": posts("/subjects/grows-{n}/versions", "Grown@N@"),
    }


class Loaded:
    """A registry and the requests for it."""

    def __init__(self, side: Side, folder: Path) -> None:
        self._side, self._folder = side, folder
        self._numbers = iter(range(1_000_000, 1 << 40, 1_000_000))
        self.files: dict[str, Path] = {}
        for number, (name, lines) in enumerate(cases(side.url).items()):
            self.files[name] = folder / f"requests-{number}-{uuid.uuid4().hex[:6]}.txt"
            self.files[name].write_text("\n".join(lines) + "\n")

    def run(self, name: str, seconds: int = SECONDS) -> Measured:
        before = self._side.cpu_s()
        script = Path(__file__).with_name("load.lua")
        command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "--timeout", "10s", "-s", str(script), self._side.url]
        done = subprocess.run(
            [*command, "--", str(self.files[name]), str(next(self._numbers))],
            capture_output=True,
            text=True,
            check=True,
        )
        told: Mapping[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
        if told["wrong"]:
            raise RuntimeError(
                f"{self._side.url}: {told['wrong']} of {told['requests']} answers of {name!r} were wrong"
            )
        return {
            "requests/s": told["requests"] / told["seconds"],
            "p50 ms": told["p50_ms"],
            "p99 ms": told["p99_ms"],
            "CPU ms/request": (self._side.cpu_s() - before) * 1000 / max(told["requests"], 1),
        }


def main(folder: Path, runs: int, console: Console) -> None:
    if shutil.which("wrk") is None:
        console.print("registry.requests needs the load generator wrk (Debian: apt-get install wrk)")
        return
    with contextlib.ExitStack() as stack:
        bootstrap = stack.enter_context(our_broker(folder / "broker")).bootstrap
        our_registry = Loaded(stack.enter_context(ours(folder, bootstrap, "_schemas")), folder)
        theirs: Loaded | None = None
        if karapace_python() is None:
            console.print(
                "KARAPACE_PYTHON names no Python with Karapace: theirs are the figures of reference measurements"
            )
        else:
            theirs = Loaded(stack.enter_context(karapace(folder, bootstrap, "_schemas_karapace")), folder)
        results = {name: measure(pair(name, our_registry, theirs), runs, console) for name in our_registry.files}
    show("Registry and Karapace, 16 connections", results, console)


def pair(name: str, our_registry: Loaded, theirs: Loaded | None) -> Case:
    if theirs is not None:
        return Case(name, functools.partial(our_registry.run, name), functools.partial(theirs.run, name))
    reference = dict(zip(FIGURES, REFERENCE[name], strict=True))

    def ours_alike() -> Measured:
        measured = our_registry.run(name)
        return {figure: measured[figure] for figure in FIGURES}

    return Case(name, ours_alike, lambda: reference)

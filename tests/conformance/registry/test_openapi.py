"""The OpenAPI document describes every response of the registry, and Schemathesis finds no contradiction."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from registry.server.routes import ENDPOINTS
from registry.server.routes.openapi import document
from tests.proofs import effort
from tests.support.registry import RegistryThread

SETTINGS = Path(__file__).with_name("schemathesis.toml")


@pytest.fixture
def our_url() -> Iterator[str]:
    with RegistryThread() as registry:
        yield registry.url


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from references(item)


def test_the_document_is_whole(our_url: str) -> None:
    served = httpx.get(f"{our_url}/openapi.json").json()
    assert served == document(ENDPOINTS)
    operations = {(method.upper(), path) for path, methods in served["paths"].items() for method in methods}
    assert operations == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    names = [operation["operationId"] for methods in served["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))
    assert all(operation["summary"] for methods in served["paths"].values() for operation in methods.values())
    shapes = served["components"]["schemas"]
    named = {reference.removeprefix("#/components/schemas/") for reference in references(served)}
    assert named == set(shapes)


def test_schemathesis_finds_nothing_in_a_little_time(our_url: str) -> None:
    import schemathesis
    from schemathesis.config import SchemathesisConfig

    schema = schemathesis.openapi.from_url(
        f"{our_url}/openapi.json", config=SchemathesisConfig.from_dict(tomllib.loads(SETTINGS.read_text()))
    )
    asked = 0

    def ask(strategy: Any) -> None:
        @settings(
            max_examples=1,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        )
        @given(case=strategy)
        def once(case: Any) -> None:
            nonlocal asked
            asked += 1
            case.call_and_validate()

        once()

    for operation in schema.get_all_operations():
        ask(operation.ok().as_strategy())
    assert asked >= len(ENDPOINTS) - 1


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_schemathesis_finds_nothing(our_url: str, tmp_path: Path) -> None:
    everything = bool(effort(0, 1))
    phases, examples = ("examples,coverage,fuzzing,stateful", 200) if everything else ("examples,fuzzing", 3)
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        str(SETTINGS),
        "run",
        f"{our_url}/openapi.json",
    ]
    command += ["--checks", "all", "--phases", phases, "--max-examples", str(examples), "--no-color"]
    command += ["--suppress-health-check", "all", "--max-failures", "10"]
    if not everything:  # the short form asks the same on every machine
        command += ["--seed", "20"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "COLUMNS": "160"})
    assert done.returncode == 0, re.sub(r"curl .*", lambda match: match[0][:600], done.stdout)[-12_000:]

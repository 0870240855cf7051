"""Clients by other makers in other languages: franz-go's for Go, Confluent's for Java (as bundled with Flink),
kafkajs's for Node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.servers.fetch import ServerMissing, require
from tests.servers.fixtures import or_skip
from tests.servers.java import QUICK, java
from tests.support.registry import RegistryThread
from tidegate.kit.http_security import BasicAuth
from tidegate.kit.passwords import PropertyFile, jetty_users

pytestmark = pytest.mark.servers
HERE = Path(__file__).parent


def told(*command: str, **environment: str) -> str:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_franz_go_calls_every_method(registry_url: str) -> None:
    program = or_skip(lambda: require("registry-go")) / "bin" / "registrycalls"
    answer = json.loads(told(str(program), registry_url))
    assert answer["wrong"] == []
    assert answer["checked"] >= 95


def test_confluents_java_client_calls_every_method(registry_url: str) -> None:
    folder, program = or_skip(lambda: (require("registry-java").absolute(), java()))
    path = f"{folder}/classes{os.pathsep}{folder}/libs/*"
    *wrong, last = told(program, *QUICK, "-cp", path, "RegistryCalls", registry_url).splitlines()
    assert wrong == []
    assert last == "checked 80, wrong 0"


def node(*arguments: str) -> Any:
    program, clients = or_skip(_node)
    return json.loads(told(program, str(HERE / "node" / "registry.mjs"), *arguments, NODE_CLIENTS=str(clients)))


def _node() -> tuple[str, Path]:
    program = shutil.which("node")
    if program is None:
        raise ServerMissing("no Node found: install Node.js 18 or later")
    return program, require("registry-node").absolute()


def test_kafkajs_encodes_and_decodes_every_type(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice: secret\n")
    with RegistryThread(guards=[BasicAuth(PropertyFile(tmp_path / "users", jetty_users))]) as registry:
        answer = node(registry.url, "alice", "secret")
    assert answer == {
        "avro": {"id": 7},
        "named": True,
        "latest": True,
        "version": True,
        "lookup": True,
        "references": {"order": {"id": 9}},
        "json": {"id": 7},
        "protobuf": {"id": 7, "note": "x"},
        "refused": "ResponseError 409",
    }

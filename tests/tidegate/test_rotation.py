"""A secured platform while certificates and passwords change and a component hangs: nothing is restarted unnecessarily."""

from __future__ import annotations

import os
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography import x509

from tests.support.platform import RunningPlatform, running_platform, tidegate, until
from tidegate.security import find_security

pytestmark = pytest.mark.proof

FACES = ("broker", "broker-metrics", "registry", "connect", "events", "events-tls", "pubsub")
OLD, NEW = "correct-horse", "battery-staple"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    folder = tmp_path_factory.mktemp("rotation")
    tidegate("secure", "init", "--password", OLD, "--data", folder / "data")
    with running_platform(folder) as started:
        yield started


def ca(platform: RunningPlatform) -> str:
    security = find_security(platform.data)
    assert security is not None
    return str(security.ca)


def kafka(platform: RunningPlatform, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": platform.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": ca(platform),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin",
        "sasl.password": password,
        "log_level": 0,
    }


def serials(addresses: dict[str, str], *faces: str) -> dict[str, int]:
    """The certificate that each face shows to a new connection."""
    shown = {}
    for face in faces or FACES:
        host, _, port = addresses[face].removeprefix("https://").removesuffix("/metrics").partition(":")
        pem = ssl.get_server_certificate((host, int(port)), timeout=60)
        shown[face] = x509.load_pem_x509_certificate(pem.encode()).serial_number
    return shown


def started(platform: RunningPlatform) -> dict[str, int]:
    return {name: component["pid"] for name, component in platform.status()["components"].items()}


def answers(platform: RunningPlatform, addresses: dict[str, str], password: str) -> dict[str, int]:
    """The response of each server to a login of the admin with this password."""
    statuses = {}
    with requests.Session() as session:
        session.trust_env, session.verify = False, ca(platform)
        for face, path in (("registry", "/subjects"), ("connect", "/connectors"), ("broker-metrics", "")):
            statuses[face] = session.get(addresses[face] + path, auth=("admin", password), timeout=60).status_code
        body = (
            '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><login xmlns="urn:partner.soap.sforce.com">'
            f"<username>admin</username><password>{password}</password></login></s:Body></s:Envelope>"
        )
        headers = {"Content-Type": "text/xml", "SOAPAction": "login"}
        url = f"{addresses['events']}/services/Soap/u/60.0"
        statuses["events"] = session.post(url, data=body, headers=headers, timeout=60).status_code
    errors: list[Any] = []
    client = AdminClient({**kafka(platform, password), "error_cb": errors.append})
    try:
        client.list_topics(timeout=10)
        statuses["broker"] = 200
    except Exception:
        statuses["broker"] = 401
    return statuses


def test_certificates_are_renewed_without_a_restart(platform: RunningPlatform) -> None:
    addresses = {**platform.addresses, "broker": platform.bootstrap_servers}
    before, pids = serials(addresses), started(platform)
    assert len(set(before.values())) == 1
    admin = AdminClient(kafka(platform, OLD))
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
    errors: list[Any] = []
    producer = Producer({**kafka(platform, OLD), "error_cb": errors.append})
    producer.produce("t", b"before")
    assert producer.flush(60) == 0
    tidegate("secure", "renew", "--host", "renewed.test", "--data", platform.data)
    old = set(before.values())
    for face in FACES:
        until(lambda face=face: serials(addresses, face)[face] not in old, f"the new certificate of {face}")
    producer.produce("t", b"after")  # over the connection that was open
    assert producer.flush(60) == 0 and errors == []
    assert started(platform) == pids


def test_passwords_change_without_a_restart(platform: RunningPlatform) -> None:
    addresses, pids = platform.addresses, started(platform)
    assert set(answers(platform, addresses, OLD).values()) == {200}
    tidegate("users", "password", "admin", "--password", NEW, "--data", platform.data)
    until(lambda: set(answers(platform, addresses, NEW).values()) == {200}, "the new password at every face")
    refused = answers(platform, addresses, OLD)
    assert {face: status for face, status in refused.items() if status == 200} == {}
    assert started(platform) == pids


def test_a_context_brings_addresses_and_login(
    platform: RunningPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder without a platform, like a user of another machine."""
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(tmp_path / "contexts.json"))
    monkeypatch.chdir(tmp_path)
    tidegate("users", "add", "alice", "--password", NEW, "--may", "admin", "--data", platform.data)
    addresses = platform.addresses
    where = [word for face in ("registry", "connect", "events", "pubsub") for word in (f"--{face}", addresses[face])]
    login = ("--ca", ca(platform), "--user", "alice", "--password", NEW)
    tidegate("use", "prod", "--broker", platform.bootstrap_servers, *where, *login)
    tidegate("topics", "create", "from-afar")
    assert "from-afar" in tidegate("topics", "list").stdout
    assert tidegate("schemas", "list").returncode == 0
    assert tidegate("connectors", "list", "--json").stdout.strip() == "{}"
    assert tidegate("events", "list").returncode == 0
    tidegate("use", "--none")
    refused = tidegate("connectors", "list", check=False)
    assert refused.returncode == 1 and "no Connect worker answers" in refused.stderr
    assert "from-afar" in tidegate("--context", "prod", "topics", "list").stdout
    # Of a folder on this machine nothing more has to be said.
    tidegate("use", "local", "--data", platform.data)
    assert "from-afar" in tidegate("topics", "list").stdout
    assert "registry" in tidegate("--context", "local", "status").stdout


def test_a_component_that_hangs_is_named(platform: RunningPlatform) -> None:
    pids = started(platform)
    os.kill(pids["registry"], signal.SIGSTOP)
    try:
        words = "registry has given no sign of life for"
        until(lambda: words in tidegate("status", "--data", platform.data).stdout, "the sentence about the registry")
    finally:
        os.kill(pids["registry"], signal.SIGCONT)
    until(lambda: "no sign of life" not in tidegate("status", "--data", platform.data).stdout, "its sign of life")
    assert started(platform) == pids

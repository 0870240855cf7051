"""Salesforce clients for Node, as published."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from events.access.grants import Grants
from events.bus.publishing import JsonEvent
from events.limits.allowance import UNLIMITED
from tests.servers.fetch import ServerMissing, require
from tests.servers.fixtures import or_skip
from tests.support.accounts import JwtApp
from tests.support.events import EventsThread

SCRIPTS = Path(__file__).parent / "node"


@pytest.fixture
def service(tmp_path: Path, jwt_app: JwtApp) -> Iterator[EventsThread]:
    with EventsThread(tmp_path, **{"events.client.certificate": str(jwt_app.certificate)}) as running:
        running.define()
        yield running


def node(service: EventsThread, script: str, *arguments: str) -> Any:
    """The JSON that the script printed."""
    program, clients = or_skip(_node)
    environment = {**os.environ, "NODE_CLIENTS": str(clients), "NODE_EXTRA_CA_CERTS": service.addresses["ca"]}
    command = [program, str(SCRIPTS / script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def _node() -> tuple[str, Path]:
    program = shutil.which("node")
    if program is None:
        raise ServerMissing("Node is not on this machine: install Node.js 18 or later")
    return program, require("node-clients").absolute()


def publish(service: EventsThread, *numbers: str) -> None:
    records = [JsonEvent("Order_Shipped__e", {"Order_Number__c": number}) for number in numbers]
    answers = service.run(service.server._publisher.publish_json(records, user=service.user))
    assert len(answers) == len(numbers)


@pytest.mark.parametrize(
    ("login", "face"), [("soap", "events"), ("client-credentials", "events-tls"), ("jwt", "events-tls")]
)
def test_salesforces_pubsub_client_publishes_and_subscribes(
    service: EventsThread, jwt_app: JwtApp, login: str, face: str
) -> None:
    arguments = [service.addresses[face], service.addresses["pubsub"], login, str(jwt_app.private_key_file)]
    if login == "soap":
        metadata = {"label": "Warehouse", "topicName": "/event/Order_Shipped__e", "defaultReplay": "EARLIEST"}
        service.run(service.server.managed.define("Warehouse", metadata))
        arguments.append("Warehouse")
    came, pairs = node(service, "pubsub.mjs", *arguments)
    assert came == [[1, "n-1"], [2, "n-2"], [3, "n-3"]]
    assert pairs == ([["n-1", "n-2", "n-3"], ["n-3"]] if login == "soap" else [])


def test_jsforce_knows_every_way_in_and_out(service: EventsThread, jwt_app: JwtApp) -> None:
    callback = "http://localhost:1717/OauthRedirect"
    app = service.server.access.accounts.apps["tidegate"]
    code = Grants(service.server.access).code(service.user, app, callback, "", "")
    said = node(service, "oauth.mjs", service.url, str(jwt_app.private_key_file), code, callback)
    org = service.server.access.org_id
    assert said == {
        **dict.fromkeys(("password", "client", "jwt"), org),
        "identity": service.user.name,
        "limits": UNLIMITED,
        "usage": True,
        "renewed": 1,
        "another": True,
        "revoked": "invalid_grant",
        "loggedOut": "INVALID_SESSION_ID",
        "refused": "invalid_client_id: client identifier invalid",
    }


def test_cometd_js_replays(service: EventsThread) -> None:
    publish(service, "c-1", "c-2", "c-3")
    assert node(service, "comet.cjs", service.url, service.token(), "3") == ["c-1", "c-2", "c-3"]


def test_jsforce_describes_publishes_and_streams(service: EventsThread) -> None:
    publish(service, "before")
    said = node(service, "jsforce.mjs", service.url, "5")
    assert said["organization"] == service.server.access.org_id
    assert {"ReplayId", "Order_Number__c", "Express__c"} <= set(said["fields"])
    assert (said["single"], said["several"]) == (True, [True, False])
    assert said["came"] == ["before", "j-1", "j-2", "j-3", "j-4"]
    assert said["bulk"] == [1, 1]
    assert said["soap"] == [[True, ["OPERATION_ENQUEUED"]], [False, ["INVALID_TYPE_ON_FIELD_IN_RECORD"]]]

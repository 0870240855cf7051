"""Salesforce clients for Python with stubs of their own, each in a separate process: a process can only load one set of
stubs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from events.bus.publishing import JsonEvent
from tests.support.events import PASSWORD, USER, EventsThread

SCRIPT = Path(__file__).parent / "python" / "follow.py"


@pytest.mark.parametrize(("client", "published"), [("aiosfpubsub", ()), ("pysfpubsub", ("p-3", "p-4"))])
def test_a_client_logs_in_and_follows_over_tls(tmp_path: Path, client: str, published: tuple[str, ...]) -> None:
    with EventsThread(tmp_path) as service:
        service.define()
        records = [JsonEvent("Order_Shipped__e", {"Order_Number__c": number}) for number in ("p-1", "p-2")]
        service.run(service.server._publisher.publish_json(records, user=service.user))
        expected = ["p-1", "p-2", *published]
        addresses = service.addresses
        arguments = [client, addresses["events-tls"], USER, PASSWORD, addresses["pubsub"], addresses["ca"]]
        arguments += ["/event/Order_Shipped__e", "Order_Number__c", str(len(expected)), *published]
        environment = {**os.environ, "SSL_CERT_FILE": addresses["ca"], "REQUESTS_CA_BUNDLE": addresses["ca"]}
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout) == expected

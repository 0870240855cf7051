from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accounts import ACCOUNTS, JwtApp
from tests.support.events import EventsThread


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, jwt_app: JwtApp) -> Iterator[EventsThread]:
    """An events service with the accounts of ``tests.support.accounts``."""
    data: Path = tmp_path_factory.mktemp("events")
    (data / "accounts.json").write_text(json.dumps(ACCOUNTS))
    keys = {"events.client.certificate": str(jwt_app.certificate), "pubsub.keepalive.ms": 300}
    with EventsThread(data, **keys) as running:
        running.define()
        yield running

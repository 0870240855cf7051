"""``GET /health`` reports whether the log responds, without a login."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.events import EventsThread


@pytest.fixture
def service(tmp_path: Path) -> Iterator[EventsThread]:
    with EventsThread(tmp_path) as running:
        yield running


def test_health_follows_the_log(service: EventsThread) -> None:
    def asked() -> tuple[int, str]:
        answer = requests.get(f"{service.url}/health", timeout=60)
        return answer.status_code, answer.json()["status"]

    assert asked() == (200, "healthy")
    service.memory_log.down = True
    assert asked() == (503, "unhealthy")
    service.memory_log.down = False
    assert asked() == (200, "healthy")

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accounts import JwtApp
from tests.support.events import EventsThread


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventsThread]:
    """An events service in memory with Order_Shipped__e defined; shared by a module, so tests look for what they sent."""
    data: Path = tmp_path_factory.mktemp("events")
    with EventsThread(data, **{"cometd.connect.timeout.ms": 5000, "pubsub.keepalive.ms": 300}) as running:
        running.define()
        yield running


@pytest.fixture(scope="session")
def jwt_app(tmp_path_factory: pytest.TempPathFactory) -> JwtApp:
    return JwtApp(tmp_path_factory.mktemp("jwt"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"

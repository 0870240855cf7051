"""The same requests to our broker and to Apache Kafka, in every version, get the same responses except for declared
differences.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.protocol.api import ApiKey
from tests.conformance.differential.compare import Rules
from tests.conformance.differential.exchange import Peer
from tests.conformance.differential.scenario import Coverage, Run
from tests.conformance.differential.scenarios import SCENARIOS
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = [pytest.mark.servers, pytest.mark.original]

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "a key of this test",
    "log.initial.task.delay.ms": None,  # a key of Kafka's own tests, which is described where it is set
}
"""Settings of both brokers, besides those of every KafkaBroker."""
APIS = sorted({scenario.api for scenario in SCENARIOS})


class Pair:
    """Both brokers, newly started with the same settings, and the coverage so far."""

    def __init__(self, ours: Peer, theirs: Peer) -> None:
        self.ours = ours
        self.theirs = theirs
        self.rules = Rules()
        self.coverage = Coverage()
        self.served, self.wanted = (
            {ApiKey(api_range["api_key"]): api_range for api_range in _apis(peer)} for peer in (ours, theirs)
        )
        self.latest = {api: api_range["max_version"] for api, api_range in self.served.items()}
        self.compared: set[ApiKey] = set()

    def versions(self, api: ApiKey) -> range:
        """The versions of Apache Kafka; kio knows no Produce before 3, which neither broker serves."""
        expected = self.wanted[api]
        return range(3 if api is ApiKey.PRODUCE else expected["min_version"], expected["max_version"] + 1)


def _apis(peer: Peer) -> list[dict[str, int]]:
    return list(peer.ask(18, 4, {"client_software_name": "test", "client_software_version": "1"})["api_keys"])


def shared_settings(theirs: KafkaBroker) -> dict[str, str]:
    """Apache Kafka's start settings, except for paths and addresses."""
    lines = (theirs.directory / "server.properties").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    return {
        key: value for key, value in settings.items() if not key.startswith(("listeners", "advertised.", "log.dir"))
    }


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    theirs = or_skip(lambda: KafkaBroker(tmp_path_factory.mktemp("differential-kafka"), SETTINGS))
    ours = TidegateBroker(tmp_path_factory.mktemp("differential-tidegate"), shared_settings(theirs))
    theirs.start()
    try:
        ours.start()
        peers = Peer(ours.port), Peer(theirs.port)
        yield Pair(*peers)
        for peer in peers:
            peer.hang_up()
    finally:
        ours.stop()
        theirs.stop()


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_answers_are_those_of_apache_kafka(pair: Pair, api: ApiKey) -> None:
    assert api in pair.wanted, f"Apache Kafka does not serve {api.title}: its scenarios need another setting"
    if api not in pair.served:
        pytest.skip(f"{api.title} is not served here yet")
    differences = []
    for scenario in SCENARIOS:
        if scenario.api is api:
            for version in scenario.versions or pair.versions(api):
                run = Run(scenario, version, pair.ours, pair.theirs, pair.rules, pair.coverage, pair.latest)
                differences += run.differences()
    pair.compared.add(api)
    assert not differences, f"{len(differences)} differences:\n" + "\n".join(map(str, differences[:200]))


def test_every_version_was_answered_well_and_with_an_error(pair: Pair) -> None:
    if pair.compared != set(APIS) & set(pair.served):
        pytest.skip("only a part of the scenarios was run")
    missing = [
        (answer, api.title, version)
        for api in sorted(pair.compared)
        for version in pair.versions(api)
        for answer, seen in (("good", pair.coverage.good), ("bad", pair.coverage.bad))
        if (api, version) not in seen and not pair.rules.is_never(answer, api.title, version)
    ]
    assert not missing, "\n".join(map(str, missing))


def test_every_declared_difference_was_met(pair: Pair) -> None:
    if pair.compared != set(APIS):
        pytest.skip("only a part of the scenarios was run")
    unused = pair.rules.unused()
    assert not unused, "\n".join(unused)

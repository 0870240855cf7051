"""Each face of a secured platform is attacked while a witness works: nobody gets in, the witness is answered, memory is bounded.

The short form makes each attack once. The long form goes on for 30 minutes a face; ``TIDEGATE_HOSTILE_S`` sets the seconds for
each face. Both judge the witness's slowest answer by the
time that the server took, without the time for which the machine was busy (``tests/hostile/witness.py``).
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import psutil
import pytest
import requests
from confluent_kafka.admin import AdminClient, NewTopic

from tests.hostile import (
    broker_attacks,
    connect_attacks,
    events_attacks,
    http_attacks,
    pubsub_attacks,
    registry_attacks,
)
from tests.hostile.siege import Attack, PeakMemory, Siege, Target, log_of
from tests.hostile.witness import ENOUGH, EVENT, TOPIC, Orders, Witness
from tests.proofs import drawn_seed, effort
from tests.support.leftovers import left_by_hostile_clients
from tests.support.platform import RunningPlatform, running_platform, tidegate
from tidegate.security import find_security

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

PASSWORD: Final = "correct-horse-battery"
SECONDS: Final = int(os.environ.get("TIDEGATE_HOSTILE_S") or effort(1, 1800))
SLOWEST_S: Final = 1.0
MOST_BYTES: Final = 900 * 1024 * 1024
"""Of the component with the processes that it started, beyond what they had before."""
WRONG_IN_LOG: Final = ("Traceback", "exception was never retrieved", "a handler failed", "unforeseen")
OBJECT: Final = (
    "<CustomObject><eventType>HighVolume</eventType><label>x</label><publishBehavior>PublishImmediately</publishBehavior>"
    "<fields><fullName>Text__c</fullName><label>Text</label><type>Text</type><length>100</length></fields></CustomObject>"
)


@dataclass(frozen=True)
class Face:
    component: str
    address: str
    """Its name among the platform's addresses."""
    public: str
    attacks: list[Attack]


FACES: Final = {
    "broker": Face("broker", "broker", "", broker_attacks.ATTACKS),
    "metrics": Face("broker", "broker-metrics", "/metrics", http_attacks.OUTSIDERS),
    "registry": Face("registry", "registry", "/subjects", registry_attacks.ATTACKS),
    "connect": Face("connect", "connect", "/connectors", connect_attacks.ATTACKS),
    "events": Face("events", "events", "/services/data/v60.0/sobjects", events_attacks.ATTACKS),
    "pubsub": Face("events", "pubsub", "", pubsub_attacks.ATTACKS),
}


@dataclass(frozen=True)
class Ground:
    """A secured platform with something of the witness's on each face."""

    platform: RunningPlatform
    addresses: dict[str, str]
    ca: str

    def as_admin(self, component: str, path: str) -> Any:
        with requests.Session() as session:
            session.trust_env, session.verify = False, self.ca
            return session.get(f"{self.addresses[component]}{path}", auth=("admin", PASSWORD), timeout=60).json()

    @property
    def admin(self) -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": self.addresses["broker"],
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": self.ca,
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "admin",
                "sasl.password": PASSWORD,
                "log_level": 0,
            }
        )

    def token(self, user: str) -> str:
        """A session of the events service, from a login by SOAP."""
        login = f"<n:login><n:username>{user}</n:username><n:password>{PASSWORD}</n:password></n:login>"
        headers = {"Content-Type": "text/xml", "SOAPAction": "login"}
        with requests.Session() as session:
            session.trust_env, session.verify = False, self.ca
            url, body = f"{self.addresses['events']}/services/Soap/u/60.0", events_attacks.ENVELOPE.format(login)
            answer = session.post(url, data=body, headers=headers, timeout=60)
        token = re.search("<sessionId>([^<]+)</sessionId>", answer.text)
        assert token is not None, answer.text
        return token[1]

    def contents(self) -> dict[str, set[str]]:
        """The objects of the platform that the attacker may not make; internal topics come when they are first asked for."""
        topics, subjects = self.admin.list_topics(timeout=60).topics, self.as_admin("registry", "/subjects")
        connectors = self.as_admin("connect", "/connectors")
        users = self.platform.data / "security" / "users.json"
        everything = {"topics": topics, "subjects": subjects, "connectors": connectors, "users": [users.read_text()]}
        return {
            kind: {name for name in names if not name.lower().startswith(("mallory", "witness", "__"))}
            for kind, names in everything.items()
        }


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("hostile")
    data = folder / "data"
    tidegate("secure", "init", "--password", PASSWORD, "--data", data)
    rights = ("write topic mallory*", "read topic mallory*", "read group mallory*", "write subject mallory*")
    more = ("manage connector mallory*", "manage event Mallory*", "write transaction mallory*")
    tidegate("users", "add", "mallory", "--password", PASSWORD, *(word for right in (*rights, *more) for word in ("--may", right)), "--data", data)  # fmt: skip
    for topic in ("mallory", "mallory-2"):
        left_by_hostile_clients(data / "broker" / f"{topic}-0")
    with running_platform(folder) as platform:
        security = find_security(data)
        assert security is not None
        ground = Ground(platform, {**platform.addresses, "broker": platform.bootstrap_servers}, str(security.ca))
        definitions = [folder / f"{name}.object" for name in (EVENT, events_attacks.EVENT)]
        for path in definitions:
            path.write_text(OBJECT)
        tidegate("events", "define", *definitions, "--data", data)
        tidegate("events", "publish", EVENT, "Text__c=first", "--data", data)
        admin = ground.admin
        for future in admin.create_topics([NewTopic(name, 1, 1) for name in (TOPIC, "mallory", "mallory-2")]).values():
            future.result(60)
        yield ground


@pytest.mark.parametrize("name", FACES)
def test_a_face_bears_hostile_clients(name: str, ground: Ground, record_property: Any) -> None:
    face, seed = FACES[name], drawn_seed()
    address = ground.addresses[face.address]
    token = {user: ground.token(user) if face.component == "events" else "" for user in ("admin", "mallory")}
    pid = ground.platform.status()["components"][face.component]["pid"]
    log_before, contents = len(log_of(ground.platform.data, face.component)), ground.contents()
    bare = address.removeprefix("https://").removesuffix("/metrics")
    target = Target(bare, ground.ca, "mallory", PASSWORD, face.public, token["mallory"], random.Random(seed))
    memory = PeakMemory(pid)
    memory.start()
    witness = Witness(Orders(name, address.removesuffix("/metrics"), pid, ground.ca, "admin", PASSWORD, token["admin"]))
    siege = Siege(target, face.attacks, seed)
    siege.run(SECONDS, witness.has_answers)
    report = witness.report()
    grown = memory.stop() - memory.idle
    record_property("attacks", sum(siege.counts.values()))
    record_property("witness", f"{report.answers} answers, slowest {report.slowest_s:.2f} s ({report.slowest_wall_s:.2f} s by the clock)")  # fmt: skip
    record_property("memory", f"{memory.idle >> 20} MiB before, {grown >> 20} MiB more at most")
    print(
        f"{name}: {sum(siege.counts.values())} attacks, {report} during {siege.during(report.slowest_at)}, {memory.idle >> 20} MiB and {grown >> 20} more"
    )
    assert siege.wrong == {}, "\n".join(f"{attack}: {words}" for attack, words in siege.wrong.items())
    assert report.errors == []
    assert report.answers > ENOUGH
    assert report.slowest_s < SLOWEST_S, (report, siege.during(report.slowest_at))
    assert grown < MOST_BYTES
    assert psutil.pid_exists(pid) and ground.platform.status()["components"][face.component]["pid"] == pid
    assert ground.contents() == contents
    said = log_of(ground.platform.data, face.component)[log_before:]
    assert not [line for line in said.splitlines() if any(words in line for words in WRONG_IN_LOG)]

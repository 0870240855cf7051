"""A secured platform, face by face and verb by verb from the routes' own declarations: nothing answers without credentials, with wrong
ones, with those of a removed user, or with those of a user who has no rights."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import grpc
import psutil
import pytest
import requests
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from starlette.routing import Route

from connect.rest.routes import admin_routes, all_routes
from events.config import EventsConfig
from events.proto import pubsub_api_pb2 as pb
from events.server.service import EventsServer
from registry.server.routes import ENDPOINTS
from tests.servers.process import wait_until
from tests.support.platform import RunningPlatform, running_platform, tidegate
from tidegate.console.config import ConsoleConfig
from tidegate.console.console import Console
from tidegate.console.pages import PAGES
from tidegate.console.sessions import Sessions
from tidegate.kit.config import parse
from tidegate.security import find_security

PASSWORD = "correct-horse-battery"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    folder = tmp_path_factory.mktemp("secured")
    data = folder / "data"
    tidegate("secure", "init", "--password", PASSWORD, "--data", data)
    for user in ("nothing", "removed", "frozen"):
        tidegate("users", "add", user, "--password", PASSWORD, "--data", data)
    with running_platform(folder, console=True) as started:
        tidegate("users", "remove", "removed", "--data", data)
        tidegate("users", "freeze", "frozen", "--data", data)
        yield started


def ca(platform: RunningPlatform) -> str:
    security = find_security(platform.data)
    assert security is not None
    return str(security.ca)


OUTSIDERS = [
    None,
    ("admin", "wrong"),
    ("stranger", PASSWORD),
    ("removed", PASSWORD),
    ("frozen", PASSWORD),
    ("admin", ""),
    ("", ""),
]


def ask(
    platform: RunningPlatform, url: str, method: str, user: tuple[str, str] | None, **more: Any
) -> requests.Response:
    with requests.Session() as session:
        session.trust_env, session.verify = False, ca(platform)
        return session.request(method, url, auth=user, timeout=60, allow_redirects=False, **more)


def requests_of(routes: Any) -> list[tuple[str, str]]:
    """(method, path) of declared routes, something in the place of each parameter."""
    made = []
    for route in routes:
        assert isinstance(route, Route)
        path = re.sub(r"/v\{[^}]*\}", "/v60.0", re.sub(r"\{[^}]*:int\}", "0", route.path))
        made += [(method, re.sub(r"\{[^}]*\}", "x", path)) for method in route.methods or ()]
    return sorted(set(made))


def test_connect(platform: RunningPlatform) -> None:
    declared = requests_of([*all_routes(MagicMock(), MagicMock(), MagicMock()), *admin_routes(MagicMock())])
    assert len(declared) > 30
    url = platform.addresses["connect"]
    for number, (method, path) in enumerate([*declared, ("GET", "/metrics"), ("GET", "/nowhere")]):
        for user in (
            None,
            OUTSIDERS[1 + number % (len(OUTSIDERS) - 1)],
        ):  # each takes as long as a password is slow to guess
            assert ask(platform, url + path, method, user, json={}).status_code == 401, (method, path, user)
        # A user without rights learns that the worker is there, and which plugins it has.
        harmless = method in ("GET", "HEAD") and path.split("/")[1] in (
            "",
            "health",
            "metrics",
            "connectors",
            "connector-plugins",
        )
        answer = ask(platform, url + path, method, ("nothing", PASSWORD), json={})
        if method in ("GET", "HEAD") and path == "/tidegate/v1/connectors":
            assert method == "HEAD" or answer.json()["connectors"] == {}
            continue
        if method in ("GET", "HEAD") and path == "/tidegate/v1/lineage":
            assert method == "HEAD" or answer.json()["flows"] == []
            continue
        assert answer.status_code == 403 or (harmless and "/x" not in path) or path.startswith("/connector-plugins"), (
            method,
            path,
        )


def test_what_workers_ask_of_each_other_is_signed(platform: RunningPlatform) -> None:
    url = platform.addresses["connect"]
    for method, path in (("POST", "/connectors/x/tasks"), ("PUT", "/connectors/x/fence"), ("PUT", "/tidegate/round")):
        for user in (*OUTSIDERS, ("nothing", PASSWORD)):
            assert ask(platform, url + path, method, user, json=[]).status_code in (400, 403), (method, path, user)


def test_registry(platform: RunningPlatform) -> None:
    declared = sorted({(one.method, re.sub(r"\{[^}]*\}", "x", one.path)) for one in ENDPOINTS})
    assert len(declared) > 40
    url = platform.addresses["registry"]
    for number, (method, path) in enumerate([*declared, ("GET", "/metrics"), ("GET", "/nowhere")]):
        for user in (
            None,
            OUTSIDERS[1 + number % (len(OUTSIDERS) - 1)],
        ):  # each takes as long as a password is slow to guess
            assert ask(platform, url + path, method, user, json={}).status_code == 401, (method, path, user)
        if method not in ("GET", "HEAD") and path != "/":
            answer = ask(platform, url + path, method, ("nothing", PASSWORD), json={"schema": '"string"'})
            assert answer.status_code == 403, (method, path, answer.text)


EMPTY_PAGES = {
    "/topics/x/connectors",
    "/topics/x/groups",
    "/topics/x/produce",
    "/topics/x/producers",
    "/topics/x/records",
}
"""Pages of the console that show nothing of a topic: forms, and the groups and producers that the user may see."""


def test_console(platform: RunningPlatform) -> None:
    console = Console(parse(ConsoleConfig, {}), Sessions(60))
    routes = requests_of([route for page in PAGES for route in page.routes(console)])
    declared = [(method, path) for method, path in routes if method != "HEAD"]
    assert len(declared) > 20
    url = platform.addresses["console"]
    for method, path in [*declared, ("GET", "/nowhere"), ("GET", "/metrics")]:
        answer = ask(platform, url + path, method, None)
        refused = answer.status_code == 303 and answer.headers["location"].startswith("/login")
        assert refused or (path == "/metrics" and answer.status_code == 401), (method, path, answer.status_code)
    for user in OUTSIDERS[1:]:
        assert (
            user is not None
            and _visitor(platform, *user).get(url, timeout=60, allow_redirects=False).status_code == 303
        )
    with _visitor(platform, "nothing", PASSWORD) as nothing:
        page = nothing.get(url, timeout=60)
        assert page.ok and "What runs" not in page.text and "Disk" not in page.text  # no right to read the platform
        token = page.text.partition('name="csrf" value="')[2].partition('"')[0]
        answered = []
        for method, path in declared:
            answer = nothing.request(method, url + path, data={"csrf": token}, timeout=60)
            assert "Traceback" not in answer.text, (method, path)
            if answer.status_code not in (400, 403, 404, 422) and "/x" in path and path not in EMPTY_PAGES:
                answered.append((method, path))
            if method == "POST":
                assert nothing.post(url + path, timeout=60).status_code == 403, path  # no token
        assert answered == []


def _visitor(platform: RunningPlatform, user: str, password: str) -> requests.Session:
    """A browser's session after a try to log in."""
    url, session = platform.addresses["console"], requests.Session()
    session.trust_env, session.verify = False, ca(platform)
    token = session.get(f"{url}/login", timeout=60).text.partition('name="csrf" value="')[2].partition('"')[0]
    session.post(f"{url}/login", data={"user": user, "password": password, "csrf": token}, timeout=60)
    return session


PUBLIC = re.compile(r"/services/data/?$|/services/oauth2/(token|authorize|revoke)|/services/Soap/|/id/|/login|/health$")
"""Routes of the events service without a login: its versions, the login's address, and its health."""


def test_events(platform: RunningPlatform, tmp_path: Path) -> None:
    fronts = EventsServer(
        parse(EventsConfig, {"data.dir": str(tmp_path)}), event_log=MagicMock(), schemas=MagicMock()
    ).fronts()
    declared = requests_of([route for front in fronts for route in front.routes() if isinstance(route, Route)])
    assert len(declared) > 40
    for face in ("events", "events-tls"):
        url = platform.addresses[face]
        for method, path in declared:
            for headers in ({}, {"Authorization": "Bearer 00Dxx0000000000!made-up"}, {"Authorization": "OAuth x"}):
                answer = ask(platform, url + path, method, None, json={}, headers=headers)
                refused = (
                    answer.status_code in (401, 403)
                    or b"invalid_client" in answer.content
                    or (path.startswith("/cometd") and b'"successful":true' not in answer.content)
                )
                assert refused or PUBLIC.search(path), (method, path, answer.status_code, answer.text[:200])


@pytest.mark.parametrize("user", [user for user in OUTSIDERS if user is not None])
def test_logins_of_the_events_service(platform: RunningPlatform, user: tuple[str, str]) -> None:
    url = platform.addresses["events"]
    body = (
        '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><login xmlns="urn:partner.soap.sforce.com">'
        f"<username>{user[0]}</username><password>{user[1]}</password></login></s:Body></s:Envelope>"
    )
    headers = {"Content-Type": "text/xml", "SOAPAction": "login"}
    answer = ask(platform, f"{url}/services/Soap/u/60.0", "POST", None, data=body, headers=headers)
    assert answer.status_code == 500 and "INVALID_LOGIN" in answer.text
    for client in ("tidegate", "tidegate-dev", "x"):
        form = {
            "grant_type": "password",
            "username": user[0],
            "password": user[1],
            "client_id": client,
            "client_secret": PASSWORD,
        }
        assert ask(platform, f"{url}/services/oauth2/token", "POST", None, data=form).status_code in (400, 401)


def test_the_pubsub_api(platform: RunningPlatform) -> None:
    address = platform.addresses["pubsub"]
    credentials = grpc.ssl_channel_credentials(Path(ca(platform)).read_bytes())
    methods = {"GetTopic": pb.TopicRequest, "GetSchema": pb.SchemaRequest, "Publish": pb.PublishRequest}
    streams = {
        "Subscribe": pb.FetchRequest,
        "PublishStream": pb.PublishRequest,
        "ManagedSubscribe": pb.ManagedFetchRequest,
    }
    with grpc.secure_channel(address, credentials) as channel:
        for metadata in ((), (("accesstoken", "x"), ("instanceurl", "https://x"), ("tenantid", "x"))):
            for name, kind in methods.items():
                call = channel.unary_unary(f"/eventbus.v1.PubSub/{name}", kind.SerializeToString)
                with pytest.raises(grpc.RpcError) as refused:
                    call(kind(), metadata=metadata, timeout=30)
                assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED, (name, metadata)  # type: ignore[attr-defined]
            for name, kind in streams.items():
                stream = channel.stream_stream(f"/eventbus.v1.PubSub/{name}", kind.SerializeToString)
                with pytest.raises(grpc.RpcError) as refused:
                    list(stream(iter([kind()]), metadata=metadata, timeout=30))
                assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED, (name, metadata)  # type: ignore[attr-defined]


def test_the_pubsub_api_has_no_plain_listener(platform: RunningPlatform) -> None:
    """Another user of the machine could read the sessions that are sent there."""
    assert "pubsub-plain" not in platform.addresses
    child = psutil.Process(platform.status()["components"]["events"]["pid"])
    ports = {socket_.laddr.port for socket_ in child.net_connections("tcp") if socket_.status == psutil.CONN_LISTEN}
    told = {int(platform.addresses[face].rpartition(":")[2]) for face in ("events", "events-tls", "pubsub")}
    assert ports == told


def kafka(platform: RunningPlatform, user: tuple[str, str] | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "bootstrap.servers": platform.bootstrap_servers,
        "ssl.ca.location": ca(platform),
        "log_level": 0,
    }
    if user is None:
        return made | {"security.protocol": "SSL"}
    return made | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user[0] or "x",
        "sasl.password": user[1] or "x",
    }


def test_the_kafka_protocol(platform: RunningPlatform) -> None:
    with ThreadPoolExecutor(len(OUTSIDERS)) as pool:
        for refused in [pool.submit(_refused_by_kafka, platform, user) for user in OUTSIDERS]:
            refused.result()


def _refused_by_kafka(platform: RunningPlatform, user: tuple[str, str] | None) -> None:
    errors: list[int] = []
    producer = Producer({**kafka(platform, user), "error_cb": lambda error: errors.append(error.code())})
    wait_until(lambda: bool(producer.poll(0.1) or errors), "the refusal")
    assert set(errors) <= {
        KafkaError._AUTHENTICATION,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._SSL,
    }
    with pytest.raises(KafkaException):
        AdminClient(kafka(platform, user)).list_topics(timeout=3)


def test_a_user_without_rights_sees_no_topic(platform: RunningPlatform) -> None:
    assert AdminClient(kafka(platform, ("nothing", PASSWORD))).list_topics(timeout=30).topics == {}
    assert "_schemas" in AdminClient(kafka(platform, ("admin", PASSWORD))).list_topics(timeout=30).topics


def test_a_refusal_says_what_is_missing(platform: RunningPlatform, tmp_path: Path) -> None:
    broker, addresses = platform.bootstrap_servers, platform.addresses
    records = tmp_path / "records"
    records.write_text("{}")
    user = {"TIDEGATE_CA": ca(platform), "TIDEGATE_USER": "nothing", "TIDEGATE_PASSWORD": PASSWORD}

    def told(*arguments: Any, **environment: str) -> str:
        elsewhere = {"TIDEGATE_DATA": str(tmp_path), "TIDEGATE_CONTEXTS": str(tmp_path / "contexts.json")}
        return tidegate(*arguments, check=False, environment=elsewhere | environment).stderr

    produce = ("produce", "orders", records, "--bootstrap-servers", broker)
    assert "topic orders: the user may not write to any topic" in told(*produce, **user)
    tidegate("users", "rights", "nothing", "--may", "write topic mine", "--data", platform.data)
    wait_until(lambda: "the user has no right to the topic" in told(*produce, **user), "the other right")
    tidegate("users", "rights", "nothing", "--data", platform.data)
    assert "security.protocol is PLAINTEXT" in told("topics", "list", "--bootstrap-servers", broker)
    trusting = told("topics", "list", "--bootstrap-servers", broker, "--property", "security.protocol=SSL")
    assert "ssl.truststore.location names the authorities" in trusting
    for face, command in (("connect", "connectors"), ("registry", "schemas"), ("events", "events")):
        plain = addresses[face].replace("https", "http")
        assert "try the address with https://" in told(command, "list", f"--{face}", plain), face


def test_the_metrics_of_the_broker(platform: RunningPlatform) -> None:
    url = platform.addresses["broker-metrics"]
    for user in (*OUTSIDERS, ("nothing", PASSWORD)):
        assert ask(platform, url, "GET", user).status_code == 401
    assert ask(platform, url, "GET", ("admin", PASSWORD)).status_code == 200


@pytest.mark.parametrize("face", ["broker", "broker-metrics", "registry", "connect", "events", "events-tls", "pubsub"])
def test_nothing_is_said_in_the_clear(platform: RunningPlatform, face: str) -> None:
    address = platform.bootstrap_servers if face == "broker" else platform.addresses[face]
    host, _, port = re.sub(r"^https?://|/metrics$", "", address).partition(":")
    with socket.create_connection((host, int(port)), 30) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            said = sock.recv(1000)
        except ConnectionResetError:
            said = b""
        assert not said.startswith(b"HTTP/"), said
    with pytest.raises(ssl.SSLCertVerificationError), socket.create_connection((host, int(port)), 30) as sock:
        ssl.create_default_context().wrap_socket(sock, server_hostname="localhost")

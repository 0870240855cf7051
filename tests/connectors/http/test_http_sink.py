"""The HTTP sink against a real server on loopback, which gives prepared responses and records requests."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest

from connect.api import ConnectError, Origin, Record, RecordBatch, RetriableConnectError, Schema, SchemaType
from connect.testing import SinkSuite
from connectors.http.sink import AivenHttpSinkConnector, HttpSinkConnector, HttpSinkV2Connector
from tests.support.certificates import write_certificate
from tests.support.connect import FakeContext, sink_task
from tidegate.kit.config import parse, validate

TEXT = Schema(SchemaType.STRING, optional=True)
ORDER = Schema.struct({"id": Schema(SchemaType.INT64), "city": Schema(SchemaType.STRING, optional=True)}, name="Order")


class Api(ThreadingHTTPServer):
    """``answers`` are given first, one a request; 200 after that. ``got`` has method, path, headers and body of each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.got: list[tuple[str, str, dict[str, str], str]] = []
        self.tokens = 0
        self.token_answers: list[int] = []
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    @property
    def bodies(self) -> list[str]:
        return [body for _, _, _, body in self.got]

    def __enter__(self) -> Api:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        said, status = b"as told", 200
        if self.path == "/token":
            self.server.tokens += 1
            status = self.server.token_answers.pop(0) if self.server.token_answers else 200
            said = json.dumps({"access_token": f"t{self.server.tokens}"}).encode()
        elif self.server.answers:
            status = self.server.answers.pop(0)
        self.server.got.append((self.command, self.path, dict(self.headers), body))
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_PUT = do_PATCH = do_DELETE = _any

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Api]:
    with Api() as made:
        yield made


def properties_of(url: str, **more: str) -> dict[str, str]:
    made = {"http.api.url": url, "retry.backoff.ms": "1", "max.retries": "2", "batch.key.pattern": ""}
    return made | {name.replace("_", "."): value for name, value in more.items()}


def batch(values: list[Any], schema: Schema | None = TEXT, keys: list[str | None] | None = None) -> RecordBatch:
    rows = [None if v is None else json.dumps(v) for v in values] if schema is None else values
    return RecordBatch(
        "orders",
        pa.array(rows, pa.string() if schema is None else schema.arrow_type),
        schema,
        keys=None if keys is None else pa.array(keys, pa.string()),
        key_schema=None if keys is None else TEXT,
        offsets=pa.array(range(len(values)), pa.int64()),
        origin=Origin("orders", 0),
    )


def put(properties: Mapping[str, str], *batches: RecordBatch, connector: Any = HttpSinkConnector) -> FakeContext:
    context = FakeContext(properties)
    task = sink_task(connector, properties, context)
    try:
        task.put(batches)
    finally:
        task.stop()
    return context


@pytest.mark.parametrize(
    "more, values, schema, bodies",
    [
        ({}, ["a", "b"], TEXT, ["a", "b"]),
        ({"batch_max_size": "2"}, ["a", "b", "c"], TEXT, ["a,b", "c"]),
        ({"batch_max_size": "9", "batch_prefix": "<", "batch_suffix": ">", "batch_separator": "|"}, ["a", "b"], TEXT, ["<a|b>"]),
        ({"request_body_format": "json"}, [{"id": 1, "city": None}], ORDER, ['{"id":1,"city":null}']),
        ({}, [{"id": 1, "city": "x"}], ORDER, ["Struct{id=1,city=x}"]),
        ({"request_body_format": "json", "batch_json_as_array": "true", "batch_max_size": "9"},
         [{"id": 1, "city": "x"}, {"id": 2, "city": "y"}], ORDER, ['[{"id":1,"city":"x"},{"id":2,"city":"y"}]']),
        ({}, [{"a": 1}, "plain"], None, ['{"a": 1}', "plain"]),
        ({"regex_patterns": "a+~b", "regex_replacements": "x~y"}, ["caab"], TEXT, ["cxy"]),
    ],
)  # fmt: skip
def test_values_are_sent_as_configured(
    api: Api, more: dict[str, str], values: list[Any], schema: Schema | None, bodies: list[str]
) -> None:
    put(properties_of(api.url, **more), batch(values, schema))
    assert api.bodies == bodies


def test_addresses_are_filled_in_and_part_requests(api: Api) -> None:
    url = api.url + "/${topic}/${city}?k=${key}"
    rows = [{"id": n, "city": city} for n, city in enumerate(("a b", "a b", "c"))]
    put(properties_of(url, batch_max_size="9", request_method="put"), batch(rows, ORDER, ["k1", "k1", "k1"]))
    assert [(method, path) for method, path, _, _ in api.got] == [
        ("PUT", "/orders/a%20b?k=k1"),
        ("PUT", "/orders/c?k=k1"),
    ]
    context = put(
        properties_of(api.url + "/${nothing}", behavior_on_error="fail"), batch([{"id": 1, "city": "x"}], ORDER)
    )
    assert "has no nothing" in str(context.errant[0][1])


def test_records_of_other_keys_are_sent_apart_by_default(api: Api) -> None:
    properties = properties_of(api.url, batch_max_size="9", batch_key_pattern="${key},${topic}")
    put(properties, batch(["a", "b", "c"], keys=["1", "1", "2"]))
    assert api.bodies == ["a,b", "c"]


@pytest.mark.parametrize("answers, sent", [([503, 200], 2), ([503, 503, 200], 3)])
def test_a_request_that_may_succeed_later_is_sent_again(api: Api, answers: list[int], sent: int) -> None:
    api.answers = answers
    assert not put(properties_of(api.url), batch(["a"])).errant
    assert api.bodies == ["a"] * sent


@pytest.mark.parametrize("more, answers, sent", [({}, [500] * 3, 3), ({"retry_on_status_codes": "500-599"}, [404], 1)])
def test_refused_records_are_reported(api: Api, more: dict[str, str], answers: list[int], sent: int) -> None:
    api.answers = [*answers, 200]
    context = put(properties_of(api.url, **more), batch(["a", "b"]))
    assert [(record.offset, str(error).partition(": the API ")[2]) for record, error in context.errant] == [
        (0, f"answered {answers[-1]}: as told")
    ]
    assert api.bodies == ["a"] * sent + ["b"]


def test_errors_are_passed_over_where_that_is_asked_for(api: Api) -> None:
    api.answers = [500] * 3
    assert not put(properties_of(api.url, behavior_on_error="ignore"), batch(["a", "b"])).errant
    assert api.bodies == ["a"] * 3 + ["b"]


def test_a_server_that_is_not_there_is_said() -> None:
    context = put(properties_of("http://127.0.0.1:1/x", max_retries="0"), batch(["a"]))
    assert "cannot be reached" in str(context.errant[0][1])


def test_a_stop_between_attempts_leaves_the_records_for_later(api: Api) -> None:
    api.answers = [500]
    context = FakeContext()
    task = sink_task(HttpSinkConnector, properties_of(api.url, retry_backoff_ms="600000"), context)
    context.stopping.set()
    with pytest.raises(RetriableConnectError, match="stopped before"):
        task.put([batch(["a"])])
    assert not context.errant


@pytest.mark.parametrize("more, path", [({}, "/x/k1"), ({"http_api_url": "/y/${key}/z"}, "/y/k1/z")])
def test_records_without_value_delete_their_key(api: Api, more: dict[str, str], path: str) -> None:
    url = api.url + more.get("http_api_url", "/x")
    put(properties_of(url, behavior_on_null_values="delete"), batch(["a", None], keys=["k1", "k1"]))
    assert [(method, path) for method, path, _, _ in api.got][1] == ("DELETE", path)
    put(properties_of(url), batch([None], keys=["k"]))
    assert len(api.got) == 2
    assert "has no value" in str(put(properties_of(url, behavior_on_null_values="fail"), batch([None])).errant[0][1])


@pytest.mark.parametrize("url", ["/v1/customers/42", "/v1/customers/42/${key}", "/v1/${key}/x"])
@pytest.mark.parametrize("key", [".", "..", ""])
def test_a_key_that_would_lead_elsewhere_is_refused(api: Api, url: str, key: str) -> None:
    context = put(
        properties_of(api.url + url, behavior_on_null_values="delete"), batch([None, None], keys=[key, "good"])
    )
    (refused,) = context.errant
    assert "has no address of its own" in str(refused[1]) and refused[0].key == key
    assert [(method, path) for method, path, _, _ in api.got] == [
        ("DELETE", url.replace("${key}", "good") if "${key}" in url else f"{url}/good")
    ]


def test_requests_say_who_sends_them(api: Api) -> None:
    basic = {"auth_type": "BASIC", "connection_user": "me", "connection_password": "secret"}
    put(properties_of(api.url, headers="X-One: 1|X-Two:2", **basic), batch(["a"]))
    headers = api.got[0][2]
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"me:secret").decode()
    assert (headers["X-One"], headers["X-Two"], headers["Content-Type"]) == ("1", "2", "text/plain; charset=utf-8")
    put(properties_of(api.url, auth_type="BEARER", bearer_token="b"), batch(["a"]))
    assert api.got[1][2]["Authorization"] == "Bearer b"


@pytest.mark.parametrize("mode", ["header", "url"])
def test_a_token_is_fetched_and_renewed(api: Api, mode: str) -> None:
    oauth = {"oauth2.token.url": f"{api.url}/token", "oauth2.client.id": "me", "oauth2.client.secret": "secret"}
    api.answers = [200, 401, 200]
    put(properties_of(api.url, auth_type="OAUTH2", **oauth, **{"oauth2.client.auth.mode": mode}), batch(["a", "b"]))
    assert [(path, headers.get("Authorization")) for _, path, headers, _ in api.got if path == "/"] == [
        ("/", "Bearer t1"), ("/", "Bearer t1"), ("/", "Bearer t2")
    ]  # fmt: skip
    form = parse_qs(api.got[0][3])
    assert form["grant_type"] == ["client_credentials"]
    assert ("client_secret" in form) is (mode == "url")


def test_an_answer_without_the_token_is_told_without_its_values(api: Api) -> None:
    oauth = {"oauth2.token.url": f"{api.url}/token", "oauth2.client.id": "me", "oauth2.client.secret": "secret"}
    with pytest.raises(ConnectError, match=r"/token gave no id_token: it answered 200 with access_token$"):
        put(properties_of(api.url, auth_type="OAUTH2", **oauth, **{"oauth2.token.property": "id_token"}), batch(["a"]))


def test_a_token_server_that_is_busy_is_asked_again(api: Api) -> None:
    oauth = {"oauth2.token.url": f"{api.url}/token", "oauth2.client.id": "me", "oauth2.client.secret": "secret"}
    api.token_answers = [503, 200]
    put(properties_of(api.url, auth_type="OAUTH2", retry_backoff_ms="1", **oauth), batch(["a"]))
    assert [path for _, path, _, _ in api.got] == ["/token", "/token", "/"]


def test_a_trust_store_of_ones_own(tmp_path: Path) -> None:
    pem = write_certificate(tmp_path / "server.pem")
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("-----BEGIN CERTIFICATE" + pem.read_text().partition("-----BEGIN CERTIFICATE")[2])
    with Api() as api:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        api.socket = context.wrap_socket(api.socket, server_side=True)
        api.scheme = "https"
        trust = {"https.ssl.truststore.location": str(trusted), "https.ssl.truststore.type": "PEM"}
        assert not put(properties_of(api.url, **trust), batch(["a"])).errant
        assert api.bodies == ["a"]
        assert "cannot be reached" in str(put(properties_of(api.url, max_retries="0"), batch(["a"])).errant[0][1])


def aiven(url: str, **more: str) -> dict[str, str]:
    made = {"http.url": url, "http.authorization.type": "none", "retry.backoff.ms": "1"}
    return made | {name.replace("_", "."): value for name, value in more.items()}


def test_aivens_keys(api: Api) -> None:
    static = {
        "http_authorization_type": "static",
        "http_headers_authorization": "Token x",
        "http_headers_additional": "A: b",
    }
    rows = [{"id": n, "city": "x"} for n in range(3)]
    put(
        aiven(api.url, batching_enabled="true", batch_max_size="2", **static),
        batch(rows, ORDER),
        connector=AivenHttpSinkConnector,
    )
    assert api.bodies == ['{"id":0,"city":"x"}\n{"id":1,"city":"x"}\n', '{"id":2,"city":"x"}\n']
    assert (api.got[0][2]["Authorization"], api.got[0][2]["A"]) == ("Token x", "b")


def test_blanks_of_aivens_batch_keys_are_kept(api: Api) -> None:
    edges = {"batch_prefix": " [\n", "batch_separator": " , ", "batch_suffix": "\n] "}
    rows = [{"id": n, "city": "x"} for n in range(2)]
    put(aiven(api.url, batching_enabled="true", **edges), batch(rows, ORDER), connector=AivenHttpSinkConnector)
    assert api.bodies == [' [\n{"id":0,"city":"x"} , {"id":1,"city":"x"}\n] ']


@pytest.mark.parametrize(
    ("edges", "body"),
    [
        # Source: HttpSinkConfig of Aiven's connector, which reads these three as they are written, "\n" by default.
        ({}, "a\nb\n"),
        ({"batch_prefix": ""}, "a\nb\n"),
        ({"batch_separator": "\n"}, "a\nb\n"),
        ({"batch_separator": "", "batch_suffix": ""}, "ab"),
        ({"batch_separator": "\t", "batch_suffix": " "}, "a\tb "),
        ({"batch_prefix": "\n", "batch_suffix": "\r\n"}, "\na\nb\r\n"),
    ],
)
def test_bodies_of_aivens_batches_begin_and_end_as_the_original_s(api: Api, edges: dict[str, str], body: str) -> None:
    put(aiven(api.url, batching_enabled="true", **edges), batch(["a", "b"]), connector=AivenHttpSinkConnector)
    assert api.bodies == [body]


@pytest.mark.parametrize(
    "change, key",
    [
        ({"http_api_url": "example"}, "http.api.url"),
        ({"auth_type": "OAUTH2"}, "oauth2.token.url"),
        ({"auth_type": "BASIC"}, "connection.user"),
        ({"retry_on_status_codes": "4xx"}, "retry.on.status.codes"),
        ({"headers": "nothing"}, "headers"),
        ({"regex_patterns": "a~b", "regex_replacements": "c"}, "regex.patterns"),
        ({"regex_patterns": "(", "regex_replacements": "c"}, "regex.patterns"),
    ],
)
def test_validation_names_the_key(change: dict[str, str], key: str) -> None:
    judged = validate(
        HttpSinkConnector.config_class,
        properties_of("http://127.0.0.1/x") | properties_of("http://127.0.0.1/x", **change),
    )
    assert [value.key.name for value in judged if value.errors] == [key]


def test_preview_shows_requests_and_sends_none(api: Api) -> None:
    properties = properties_of(api.url + "/${topic}")
    task = HttpSinkConnector.task_class(sink_task(HttpSinkConnector, properties).config, FakeContext(properties))
    assert list(task.preview([batch(["a"])])) == [f"POST {api.url}/orders a"]
    assert not api.got


class TestSuite(SinkSuite):
    connector_class = HttpSinkConnector

    @pytest.fixture
    def properties(self, api: Api) -> Mapping[str, str]:
        self.api = api
        return properties_of(api.url, batch_max_size="10", batch_separator=";")

    def record(self, n: int) -> Record:
        return Record(self.topic, str(n), TEXT)

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return [int(line) for body in self.api.bodies for line in body.split(";")]


def test_topics_have_apis_of_their_own(api: Api) -> None:
    config = {
        "http.api.base.url": f"{api.url}/v1/",
        "apis.num": "2",
        "api1.http.api.path": "/orders/${id}",
        "api1.topics": "orders, others",
        "api1.http.request.headers": "X-City: ${city}|X-Fixed: yes",
        "api1.http.request.sensitive.headers": "X-Secret: s",
        "api1.http.request.parameters": "from=${city}&all=true",
        "api1.max.batch.size": "10",
        "api2.http.api.path": "texts",
        "api2.topics": "texts",
        "api2.request.body.format": "STRING",
        "api2.http.request.method": "PUT",
        "auth.type": "API_KEY",
        "api.key.name": "X-Key",
        "api.key.value": "k",
        "behavior.on.error": "FAIL",
    }
    task = sink_task(HttpSinkV2Connector, config)
    task.put([batch([{"id": 1, "city": "Bonn"}, {"id": 1, "city": "Bonn"}, {"id": 1, "city": "Ulm"}], ORDER)])
    task.put([batch(["a"]).replace(topic="texts")])
    with pytest.raises(ConnectError, match="no API takes records of elsewhere"):
        task.put([batch(["a"]).replace(topic="elsewhere")])
    task.stop()
    assert [(method, path, body) for method, path, _, body in api.got] == [
        ("POST", "/v1/orders/1?from=Bonn&all=true", '{"id":1,"city":"Bonn"},{"id":1,"city":"Bonn"}'),
        ("POST", "/v1/orders/1?from=Ulm&all=true", '{"id":1,"city":"Ulm"}'),
        ("PUT", "/v1/texts", "a"),
    ]
    sent = api.got[0][2]
    assert (sent["X-City"], sent["X-Fixed"], sent["X-Secret"], sent["X-Key"]) == ("Bonn", "yes", "s", "k")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"api1.topics": ""}, "api1.topics"),
        ({"apis.num": "2"}, "api2.http.api.path"),
        ({"api1.max.retries": "many"}, "api1.max.retries"),
        ({"api1.http.path.parameters": "a"}, "api1.http.path.parameters"),
        ({"https.ssl.truststorefile": "data:text/plain;base64,?"}, "https.ssl.truststorefile"),
        ({"auth.type": "API_KEY"}, "api.key.name"),
        ({"apis.num": "16"}, "apis.num"),
    ],
)
def test_validation_of_several_apis_names_the_key(change: dict[str, str], key: str) -> None:
    config = {"http.api.base.url": "https://127.0.0.1", "api1.http.api.path": "/a", "api1.topics": "t", **change}
    wrong = {value.key.name for value in validate(HttpSinkV2Connector.config_class, config) if value.errors}
    assert key in wrong and wrong <= {key, "api2.topics"}


def test_a_trust_store_within_the_configuration(tmp_path: Path) -> None:
    pem = write_certificate(tmp_path / "server.pem").read_text()
    trusted = "-----BEGIN CERTIFICATE" + pem.partition("-----BEGIN CERTIFICATE")[2]
    content = base64.b64encode(trusted.encode()).decode()
    properties = {"http.api.url": "https://127.0.0.1", "https.ssl.truststorefile": f"data:text/plain;base64,{content}"}
    config = parse(HttpSinkConnector.config_class, {**properties, "https.ssl.truststore.type": "PEM"})
    assert config.tls is not None and len(config.tls.get_ca_certs()) == 1
    assert parse(HttpSinkConnector.config_class, {**properties, "https.ssl.enabled": "false"}).tls is None

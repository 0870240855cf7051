"""Basic authentication, CORS and response headers of the HTTP server."""

import asyncio
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

from tidegate.kit.config import parse, validate
from tidegate.kit.errors import UsageError
from tidegate.kit.http import face, json_response
from tidegate.kit.http_security import BasicAuth, BrowserKeys, user_of
from tidegate.kit.jaas import LoginModule, login_contexts
from tidegate.kit.metrics import Metrics
from tidegate.kit.passwords import LoggedIn, PropertyFile, jetty_users, plain_users


async def whoami(request):
    return json_response({"user": user_of(request)})


def render(request, error):
    status = error.status_code if isinstance(error, HTTPException) else error.http_status
    return json_response({"message": str(error)}, status)


def client(*, guards=(), **keys):
    browser = parse(BrowserKeys, {name.replace("_", "."): value for name, value in keys.items()})
    routes = [Route("/whoami", whoami), Route("/health", whoami)]
    app = face(
        routes,
        name="toy",
        metrics=Metrics(),
        render_error=render,
        guards=guards,
        middleware=browser.middleware(),
    )
    return TestClient(app)


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "passwords"
    digest = hashlib.md5(b"md5").hexdigest()
    path.write_text(
        f"alice: plain, admin , ops\nbob: OBF:1yta1t331v8w1v9q1t331ytc,ops\ncarol: MD5:{digest}\ndave: plain:x\n"
    )
    return path


def test_users_of_a_jetty_file_come_in_with_their_password(users):
    auth = BasicAuth(PropertyFile(users, jetty_users), realm="registry", skip=["/health"])
    asked = client(guards=[auth])
    for name, password in (("alice", "plain"), ("bob", "secret"), ("carol", "md5"), ("dave", "plain:x")):
        assert asked.get("/whoami", auth=(name, password)).json() == {"user": name}
        assert asked.get("/whoami", auth=(name, "other")).status_code == 401
    refused = asked.get("/whoami")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Basic realm="registry"')
    assert asked.get("/whoami", auth=("nobody", "")).status_code == 401
    assert asked.get("/health").json() == {"user": None}
    assert asked.get("/metrics").status_code == 401


def test_roles_are_asked_for(users):
    asked = client(guards=[BasicAuth(PropertyFile(users, jetty_users), roles=["admin"])])
    assert asked.get("/whoami", auth=("alice", "plain")).status_code == 200
    assert asked.get("/whoami", auth=("bob", "secret")).status_code == 401


def test_a_changed_file_is_read_again_and_a_broken_one_changes_nothing(users):
    asked = client(guards=[BasicAuth(PropertyFile(users, jetty_users))])
    users.write_text("erin: new-password\n")
    assert asked.get("/whoami", auth=("erin", "new-password")).status_code == 200
    assert asked.get("/whoami", auth=("alice", "plain")).status_code == 401
    users.write_text("frank: CRYPT:ab12cd\n")
    assert asked.get("/whoami", auth=("erin", "new-password")).status_code == 200
    users.unlink()
    assert asked.get("/whoami", auth=("erin", "new-password")).status_code == 200


@pytest.mark.parametrize(
    ("line", "told"), [("a: CRYPT:x", "CRYPT"), ("a: OBF:!", "no OBF"), ("a: \\u00", "properties")]
)
def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path, line, told):
    (tmp_path / "p").write_text(line)
    with pytest.raises(UsageError, match=told):
        jetty_users(tmp_path / "p")


def test_connects_file_holds_whole_passwords(tmp_path):
    (tmp_path / "p").write_text("alice=a, b:c\n")
    assert asyncio.run(PropertyFile(tmp_path / "p", plain_users).login("alice", "a, b:c")) == LoggedIn("alice")
    assert asyncio.run(PropertyFile(tmp_path / "p", plain_users).login("alice", "a")) is None


@settings(max_examples=50, deadline=None)
@given(
    st.one_of(
        st.text(), st.text().map(lambda text: "Basic " + text), st.binary().map(lambda raw: raw.decode("latin-1"))
    )
)
def test_no_header_is_more_than_refused(header):
    class Nobody:
        async def login(self, name, password):
            return None

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"authorization", header.encode("utf-8", "replace"))],
    }
    with pytest.raises(UsageError, match="Unauthorized"):
        asyncio.run(BasicAuth(Nobody())(Request({**scope, "query_string": b"", "server": ("h", 1), "scheme": "http"})))


def test_pages_of_allowed_origins_may_ask(users):
    asked = client(
        guards=[BasicAuth(PropertyFile(users, jetty_users))],
        access_control_allow_origin="https://ui.example.org, https://*.corp.example",
        access_control_allow_methods="GET,PUT,POST,DELETE",
    )
    preflight = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"}
    for origin in ("https://ui.example.org", "https://a.b.corp.example"):
        answer = asked.options("/whoami", headers={"Origin": origin, **preflight})
        assert answer.headers["access-control-allow-origin"] == origin
        assert "PUT" in answer.headers["access-control-allow-methods"]
        refused = asked.get("/whoami", headers={"Origin": origin})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, origin)
    for origin in ("https://ui.example.org.evil.example", "https://ui-example.org"):
        assert "access-control-allow-origin" not in asked.get("/whoami", headers={"Origin": origin}).headers
    assert "access-control-allow-origin" not in client().get("/whoami", headers={"Origin": "https://a"}).headers


def test_headers_are_put_on_every_answer():
    rules = '"set Cache-Control: no-cache, no-store", add X-Frame-Options: DENY, setDate Expires: 31540000000'
    answer = client(response_http_headers_config=rules).get("/nothing")
    assert answer.headers["cache-control"] == "no-cache, no-store"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["expires"].endswith("GMT")


@pytest.mark.parametrize("rules", ["put X: 1", "set X", "set a b: 1", "setDate X: soon"])
def test_wrong_rules_are_named(rules):
    (wrong,) = [value for value in validate(BrowserKeys, {"response.http.headers.config": rules}) if value.errors]
    assert wrong.key.name == "response.http.headers.config"


def test_a_jaas_file_has_named_entries():
    text = """
    // of the registry
    SchemaRegistry-Props {
      org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required
        file="/etc/passwords" debug="false";
    };
    KafkaConnect { a.B optional; c.D sufficient x=y; };
    """
    assert login_contexts(text) == {
        "SchemaRegistry-Props": [
            LoginModule(
                "org.eclipse.jetty.jaas.spi.PropertyFileLoginModule", {"file": "/etc/passwords", "debug": "false"}
            )
        ],
        "KafkaConnect": [LoginModule("a.B", {}), LoginModule("c.D", {"x": "y"})],
    }


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='{};="a \n/'))
def test_a_jaas_file_is_read_or_refused(text):
    try:
        login_contexts(text)
    except ValueError:
        pass

"""Login, token, headers and escaping of the console, by an HTTP client."""

import asyncio
import re
import time

import httpx
import pytest
import structlog
from starlette.routing import Route

from tidegate.clients.credentials import Credentials
from tidegate.console.application import application
from tidegate.console.config import ConsoleConfig
from tidegate.console.console import Console
from tidegate.console.sessions import Sessions
from tidegate.console.troubles import Trouble
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError
from tidegate.kit.http import HttpServer, face, json_response
from tidegate.kit.http_security import BasicAuth
from tidegate.kit.metrics import Metrics
from tidegate.kit.users import ADMIN, PlatformUser, Users, UsersFile, with_password, write_users

NOTHING = {
    "connect.url": "",
    "schema.registry.url": "",
    "events.url": "",
    "bootstrap.servers": "",
}
PASSWORD = "correct horse"


def visitor(console: Console) -> httpx.AsyncClient:
    app = application(console, Metrics())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8080")


def console_of(users=None, **properties: str) -> Console:
    config = parse(ConsoleConfig, {**NOTHING, **properties})
    return Console(config, Sessions(60), users=users)


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    path = tmp_path_factory.mktemp("users") / "users.json"
    made = with_password(PlatformUser("ada", rights=(ADMIN,)), PASSWORD, now_ms=int(time.time() * 1000))
    write_users(path, Users([made]))
    return path


def token_of(page: httpx.Response) -> str:
    return re.search(r'name="csrf" value="([^"]+)"', page.text)[1]


def test_pages_load_nothing_from_elsewhere_and_run_no_inline_script():
    async def run():
        async with visitor(console_of()) as client:
            page = await client.get("/")
            assert page.status_code == 200
            assert "default-src 'self'" in page.headers["content-security-policy"]
            assert "unsafe" not in page.headers["content-security-policy"]
            assert page.headers["x-content-type-options"] == "nosniff" and page.headers["cache-control"] == "no-store"
            assert re.findall(r"<script(?![^>]* src=)|\sstyle=|\son\w+=|https?://(?!127\.0\.0\.1)", page.text) == []
            for asset in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text):
                answer = await client.get(asset)
                assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"], asset
            assert (await client.get("/static/x/..%2Fserver.py")).status_code == 404
            missing = await client.get("/nothing<script>alert(1)</script>")
            assert missing.status_code == 404 and "<script>alert" not in missing.text
            assert "console_http_requests_total" in (await client.get("/metrics")).text

    asyncio.run(run())


def test_only_users_log_in_and_every_change_needs_the_token_of_a_page(users):
    async def run():
        console = console_of(UsersFile(users), **{"users.file": str(users)})
        async with visitor(console) as client:
            refused = await client.get("/?a=b")
            assert refused.status_code == 303 and refused.headers["location"] == "/login?next=%2F%3Fa%3Db"
            assert "HttpOnly; SameSite=Strict" in refused.headers["set-cookie"]
            part = await client.get(
                "/overview/live", headers={"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:8080/?x=1"}
            )
            assert part.headers["hx-redirect"] == "/login?next=%2F%3Fx%3D1"
            page = await client.get("/login?next=//evil.example")
            assert 'name="next" value="/"' in page.text
            form = {"user": "ada", "password": PASSWORD, "next": "/?a=b", "csrf": token_of(page)}
            assert (await client.post("/login", data={**form, "csrf": ""})).status_code == 403
            assert (
                await client.post("/login", data=form, headers={"Origin": "http://evil.example"})
            ).status_code == 403
            assert (await client.post("/login", json=form)).status_code == 400
            wrong = await client.post("/login", data={**form, "password": "another"})
            assert wrong.status_code == 401 and "<h1>Log in</h1>" in wrong.text
            before = client.cookies.get("tidegate-console-8080")
            with structlog.testing.capture_logs() as audit:
                done = await client.post("/login", data=form)
            assert done.status_code == 303 and done.headers["location"] == "/?a=b"
            assert client.cookies.get("tidegate-console-8080") != before
            assert [(line["event"], line["user"]) for line in audit] == [("login", "ada")]
            assert PASSWORD not in str(audit)
            shown = await client.get("/")
            assert shown.status_code == 200 and "ada" in shown.text and token_of(shown) != form["csrf"]
            assert (await client.post("/logout", data={"csrf": form["csrf"]})).status_code == 403
            assert (await client.post("/logout", data={"csrf": token_of(shown)})).status_code == 303
            assert (await client.get("/")).status_code == 303
            assert (await client.get("/metrics")).status_code == 401
            assert (await client.get("/metrics", auth=("ada", PASSWORD))).status_code == 200

    asyncio.run(run())


def test_a_session_ends_with_its_user_its_time_and_its_number(users, tmp_path):
    now = 0.0
    sessions = Sessions(60, clock=lambda: now)
    session = sessions.log_in(credentials := Credentials("a"))
    now = 59.0
    assert sessions.find(session.id).credentials == credentials
    now = 120.0
    assert sessions.find(session.id).credentials is None
    assert sessions.find("chosen by somebody else").id != "chosen by somebody else"

    async def run():
        path = tmp_path / "users.json"
        path.write_bytes(users.read_bytes())
        async with visitor(console_of(UsersFile(path), **{"users.file": str(path)})) as client:
            token = token_of(await client.get("/login"))
            await client.post("/login", data={"user": "ada", "password": PASSWORD, "csrf": token})
            assert (await client.get("/")).status_code == 200
            write_users(path, Users([]))
            assert (await client.get("/")).status_code == 303

    asyncio.run(run())


def test_what_faces_say_is_escaped():
    hostile = "<script>alert('x')</script>\"'&"
    console = console_of()
    trouble = Trouble("error", hostile, hostile, hostile, "/connectors/x", hostile)
    environment = console.renderer._environment
    text = environment.from_string('{% from "macros.html" import trouble %}{{ trouble(it) }}').render(it=trouble)
    assert "<script>" not in text and text.count("&lt;script&gt;") == 6


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"connect.url": "localhost:8083"}, "'localhost:8083' is no address"),
        ({"authentication.method": "BASIC"}, "connect.url must name the worker"),
        ({"kafka.client.login": "nobody"}, "kafka.client.login"),
    ],
)
def test_a_wrong_configuration_is_told(properties, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        parse(ConsoleConfig, {**NOTHING, **properties})


def test_a_worker_checks_logins_where_the_console_knows_no_users(users):
    async def listed(_):
        return json_response({})

    def worker(guards):
        def render(_, error):
            return json_response({"message": str(error)}, getattr(error, "http_status", None) or error.status_code)

        routes = [Route("/connectors", listed)]
        return HttpServer(
            face(routes, name="toy", metrics=Metrics(), render_error=render, guards=guards), "127.0.0.1", 0
        )

    async def logged_in(url, user, password):
        console = console_of(**{"authentication.method": "BASIC", "connect.url": url})
        async with visitor(console) as client:
            assert (await client.get("/")).status_code == 303
            form = {"user": user, "password": password, "csrf": token_of(await client.get("/login"))}
            return await client.post("/login", data=form), await client.get("/connectors")

    async def run():
        guarded, open_to_all = worker([BasicAuth(UsersFile(users))]), worker([])
        for server in (guarded, open_to_all):
            await server.start()
        try:
            done, page = await logged_in(guarded.url, "ada", PASSWORD)
            assert done.status_code == 303 and page.status_code == 200 and "There is no connector yet" in page.text
            done, page = await logged_in(guarded.url, "ada", "wrong")
            assert done.status_code == 401 and page.status_code == 303
            done, page = await logged_in(open_to_all.url, "ada", "anything")
            assert "asks nobody for a login" in done.text and page.status_code == 303
            async with visitor(console_of(**{"connect.url": guarded.url})) as client:
                page = await client.get("/connectors")
                assert page.status_code == 401 and "authentication.method=BASIC" in page.text
        finally:
            for server in (guarded, open_to_all):
                await server.stop()

    asyncio.run(run())

"""OAuth's grant types, over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.accounts import SECRET, TOKEN, JwtApp
from tests.support.events import PASSWORD, USER, EventsThread

ADMIN = {"client_id": "tidegate", "client_secret": PASSWORD}
WRITERS = {"client_id": "writers", "client_secret": SECRET}
CALLBACK = "http://localhost:1717/OauthRedirect"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def post(service: EventsThread, resource: str, **form: str) -> tuple[int, Any]:
    answer = requests.post(f"{service.url}/services/oauth2/{resource}", data=form, timeout=60)
    return answer.status_code, answer.json() if answer.content else None


def refusal(service: EventsThread, **form: str) -> tuple[str, str]:
    status, said = post(service, "token", **form)
    assert status == 400
    return said["error"], said["error_description"]


def works(service: EventsThread, token: str) -> bool:
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{service.url}/services/oauth2/userinfo", headers=headers, timeout=60).ok


def test_the_answer_has_salesforces_members_and_is_signed_with_the_secret(service: EventsThread) -> None:
    _, said = post(service, "token", grant_type="client_credentials", **ADMIN)
    assert set(said) == {"access_token", "signature", "scope", "instance_url", "id", "token_type", "issued_at"}
    made = hmac.digest(PASSWORD.encode(), (said["id"] + said["issued_at"]).encode(), "sha256")
    assert base64.b64decode(said["signature"]) == made


def test_an_app_acts_as_its_user_by_its_own_credentials(service: EventsThread) -> None:
    _, said = post(service, "token", grant_type="client_credentials", **WRITERS)
    assert service.server.access.session(said["access_token"]).user_name == "writer@shop"


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"username": "writer@shop", "password": "x"}, ("invalid_grant", "authentication failure")),
        ({"username": "careful@shop", "password": SECRET}, ("invalid_grant", "authentication failure")),
        ({"username": "frozen@shop", "password": SECRET}, ("inactive_user", "user is inactive")),
        (
            {"username": "reader@shop", "password": SECRET, **WRITERS},
            ("invalid_app_access", "user is not admin approved to access this app"),
        ),
        (
            {"username": USER, "password": PASSWORD, "client_id": "none"},
            ("invalid_client_id", "client identifier invalid"),
        ),
        (
            {"username": USER, "password": PASSWORD, "client_secret": "x"},
            ("invalid_client", "invalid client credentials"),
        ),
        (
            {"username": USER, "password": PASSWORD, "client_id": "page"},
            ("invalid_client", "invalid client credentials"),
        ),
    ],
)
def test_a_password_is_refused_in_salesforces_words(
    service: EventsThread, form: dict[str, str], expected: tuple[str, str]
) -> None:
    assert refusal(service, **{"grant_type": "password", **ADMIN, **form}) == expected


def test_a_password_with_its_security_token_is_taken(service: EventsThread) -> None:
    form = {"grant_type": "password", "username": "careful@shop", "password": SECRET + TOKEN, **ADMIN}
    assert post(service, "token", **form)[0] == 200


def assertion(service: EventsThread, jwt_app: JwtApp, **claims: Any) -> str:
    said = {"iss": "tidegate", "sub": "reader@shop", "aud": service.url, "exp": int(time.time()) + 180}
    return jwt_app.sign(said | claims)


def test_a_signed_assertion_gives_a_token_of_its_user(service: EventsThread, jwt_app: JwtApp) -> None:
    for audience in (service.url, service.secure_url, "https://login.salesforce.com", "https://test.salesforce.com"):
        form = {"grant_type": BEARER, "assertion": assertion(service, jwt_app, aud=audience)}
        status, said = post(service, "token", **form)
        assert status == 200, said
        assert service.server.access.session(said["access_token"]).user_name == "reader@shop"


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"sub": "stranger@shop"}, ("invalid_grant", "user hasn't approved this consumer")),
        ({"sub": "frozen@shop"}, ("inactive_user", "user is inactive")),
        ({"iss": "none"}, ("invalid_client_id", "client identifier invalid")),
        ({"iss": "writers"}, ("invalid_grant", "invalid assertion")),
        ({"aud": "https://evil.example"}, ("invalid_grant", "audience is invalid")),
        ({"exp": 1_000_000}, ("invalid_grant", "expired authorization code")),
    ],
)
def test_an_assertion_is_refused_in_salesforces_words(
    service: EventsThread, jwt_app: JwtApp, claims: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert refusal(service, grant_type=BEARER, assertion=assertion(service, jwt_app, **claims)) == expected


def log_in(service: EventsThread, user: str = USER, password: str = PASSWORD, **asked: str) -> dict[str, list[str]]:
    """The parameters with which the browser is redirected after the login page was filled in."""
    form = {"response_type": "code", "client_id": "tidegate", "redirect_uri": CALLBACK, "state": "s&1"} | asked
    where = f"{service.url}/services/oauth2/authorize"
    page = requests.get(where, params=form, timeout=60, allow_redirects=False)
    if page.status_code == 302:
        return parse_qs(urlsplit(page.headers["Location"]).query)
    assert "s&amp;1" in page.text
    answer = requests.post(
        where, data=form | {"username": user, "password": password}, timeout=60, allow_redirects=False
    )
    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"].startswith(form["redirect_uri"])
    return parse_qs(urlsplit(answer.headers["Location"]).query)


def exchange(service: EventsThread, code: str, **more: str) -> tuple[int, Any]:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, **ADMIN}
    return post(service, "token", **form | more)


def test_a_code_gives_a_token_that_is_refreshed_until_it_is_revoked(service: EventsThread) -> None:
    back = log_in(service)
    assert back["state"] == ["s&1"]
    status, said = exchange(service, back["code"][0])
    assert status == 200, said
    refresh = {"grant_type": "refresh_token", "refresh_token": said["refresh_token"], **ADMIN}
    status, fresh = post(service, "token", **refresh)
    assert (status, "refresh_token" in fresh) == (200, False)
    assert works(service, said["access_token"])
    assert works(service, fresh["access_token"])
    assert post(service, "revoke", token=said["refresh_token"])[0] == 200
    assert not works(service, said["access_token"])
    assert not works(service, fresh["access_token"])
    assert refusal(service, **refresh) == ("invalid_grant", "expired access/refresh token")


def test_a_code_is_good_once_for_its_app_and_address(service: EventsThread) -> None:
    (code,) = log_in(service)["code"]
    assert exchange(service, code, redirect_uri="http://elsewhere")[1]["error"] == "invalid_grant"
    assert exchange(service, code, **WRITERS)[1]["error_description"] == "expired authorization code"
    status, said = exchange(service, code)
    assert status == 200
    assert works(service, said["access_token"])
    assert exchange(service, code)[1]["error_description"] == "expired authorization code"
    assert not works(service, said["access_token"]), "who used the code first may have stolen it"
    refresh = {"grant_type": "refresh_token", "refresh_token": said["refresh_token"], **ADMIN}
    assert refusal(service, **refresh) == ("invalid_grant", "expired access/refresh token")


def test_no_refresh_token_unless_it_is_asked_for(service: EventsThread) -> None:
    (code,) = log_in(service, scope="api id")["code"]
    _, said = exchange(service, code)
    assert (said["scope"], "refresh_token" in said) == ("api id", False)
    assert post(service, "introspect", token=said["access_token"], **ADMIN)[1]["scope"] == "api id"


def test_a_session_without_the_scope_of_apis_only_says_whose_it_is(service: EventsThread) -> None:
    (code,) = log_in(service, scope="id")["code"]
    _, said = exchange(service, code)
    token = said["access_token"]
    assert works(service, token)
    bearer = {"Authorization": f"Bearer {token}"}
    answer = requests.get(f"{service.url}/services/data/v60.0/sobjects", headers=bearer, timeout=60)
    assert (answer.status_code, answer.json()[0]["errorCode"]) == (401, "INVALID_SESSION_ID")
    assert "not valid for use with the API" in answer.json()[0]["message"]


def test_a_refresh_token_of_a_program_without_a_secret_is_good_once(service: EventsThread) -> None:
    page = {"client_id": "page", "redirect_uri": "http://localhost:1717/done?a=b"}
    verifier = "v" * 43
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    (code,) = log_in(service, code_challenge=challenge, **page)["code"]
    _, first = exchange(service, code, client_secret="", **page, code_verifier=verifier)

    def refresh(token: str) -> tuple[int, Any]:
        return post(service, "token", grant_type="refresh_token", refresh_token=token, client_id="page")

    status, second = refresh(first["refresh_token"])
    assert status == 200
    assert second["refresh_token"] != first["refresh_token"]
    _, third = refresh(second["refresh_token"])
    assert works(service, third["access_token"])
    assert refresh(first["refresh_token"])[1]["error_description"] == "expired access/refresh token"
    assert not works(service, third["access_token"]), "one of the two who have the tokens has stolen them"
    assert refresh(third["refresh_token"])[0] == 400


def test_a_program_without_a_secret_proves_itself_with_pkce(service: EventsThread) -> None:
    verifier = "v" * 43
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    page = {"client_id": "page", "redirect_uri": "http://localhost:1717/done?a=b"}
    (code,) = log_in(service, code_challenge=challenge, **page)["code"]
    wrong = exchange(service, code, client_secret="", **page, code_verifier="w" * 43)
    assert wrong[1]["error_description"] == "invalid code verifier"
    assert exchange(service, code, client_secret="", **page, code_verifier=verifier)[0] == 200
    (bare,) = log_in(service, **page)["code"]
    assert exchange(service, bare, client_secret="", **page)[1]["error"] == "invalid_client"


def test_authorization_errors_are_reported_to_the_page_or_the_app(service: EventsThread) -> None:
    assert log_in(service, response_type="token")["error"] == ["unsupported_response_type"]
    assert log_in(service, scope="sudo")["error"] == ["invalid_scope"]
    assert log_in(service, user="frozen@shop", password=SECRET)["error"] == ["inactive_user"]
    where = f"{service.url}/services/oauth2/authorize"
    for asked in ({"client_id": "none"}, {"client_id": "tidegate", "redirect_uri": "http://evil.example"}):
        answer = requests.get(where, params=asked, timeout=60, allow_redirects=False)
        assert answer.status_code == 400
    form = {"response_type": "code", "client_id": "tidegate", "redirect_uri": CALLBACK, "username": "<b>"}
    page = requests.post(where, data=form, timeout=60)
    assert (page.status_code, "check your user name" in page.text, "<b>" in page.text) == (200, True, False)


def test_an_app_learns_about_its_own_tokens(service: EventsThread) -> None:
    _, said = post(service, "token", grant_type="client_credentials", **WRITERS)
    _, about = post(service, "introspect", token=said["access_token"], **WRITERS)
    assert (about["active"], about["username"], about["client_id"]) == (True, "writer@shop", "writers")
    assert about["sub"] == said["id"]
    for token, app in ((said["access_token"], ADMIN), ("x", WRITERS), (said["access_token"][:-1], WRITERS)):
        assert post(service, "introspect", token=token, **app)[1] == {"active": False}
    assert post(service, "introspect", token="x", **WRITERS | {"client_secret": "x"})[0] == 400


_FORMS = st.dictionaries(
    st.sampled_from(["grant_type", "client_id", "client_secret", "username", "password", "assertion", "code", "scope"]),
    st.sampled_from(
        ["password", "client_credentials", "refresh_token", "authorization_code", BEARER, "tidegate", "page"]
    )
    | st.text(max_size=20),
)


@settings(max_examples=25, deadline=None)
@given(_FORMS)
def test_any_form_is_answered_in_oauths_words(service: EventsThread, form: dict[str, str]) -> None:
    for resource in ("token", "introspect"):
        status, said = post(service, resource, **form)
        assert (status, set(said)) == (400, {"error", "error_description"})
        assert "Internal" not in said["error_description"]

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.support.events import PASSWORD, USER, EventsThread

CLIENT = {"client_id": "tidegate", "client_secret": PASSWORD}


def token(service: EventsThread, **form: str) -> requests.Response:
    return requests.post(f"{service.url}/services/oauth2/token", data=form, timeout=60)


def test_the_password_flow_gives_a_token_and_an_identity(service: EventsThread) -> None:
    said = token(service, grant_type="password", username=USER, password=PASSWORD, format="json", **CLIENT).json()
    assert said["instance_url"] == service.url
    assert said["token_type"] == "Bearer"
    org = said["id"].partition("/id/")[2].partition("/")[0]
    assert len(org) == 18
    headers = {"Authorization": f"Bearer {said['access_token']}"}
    about = requests.get(f"{service.url}/services/oauth2/userinfo", headers=headers, timeout=60).json()
    assert (about["organization_id"], about["preferred_username"]) == (org, USER)
    assert requests.get(said["id"], headers=headers, timeout=60).json()["username"] == USER


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({"grant_type": "password", "username": USER, "password": "wrong", **CLIENT}, 400, "invalid_grant"),
        ({"grant_type": "password", **CLIENT}, 400, "invalid_grant"),
        ({"grant_type": "password", "username": USER, "password": PASSWORD}, 400, "invalid_client_id"),
        ({"grant_type": "client_credentials", "client_id": "tidegate", "client_secret": "x"}, 400, "invalid_client"),
        ({"grant_type": "refresh_token", **CLIENT, "refresh_token": "5Aep861x.y"}, 400, "invalid_grant"),
        ({"grant_type": "authorization_code", **CLIENT, "code": "aPrx"}, 400, "invalid_grant"),
        ({"grant_type": "magic"}, 400, "unsupported_grant_type"),
        ({}, 400, "unsupported_grant_type"),
    ],
)
def test_a_refused_grant_says_why(service: EventsThread, form: dict[str, Any], status: int, code: str) -> None:
    answer = token(service, **form)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.json()["error_description"]


@pytest.mark.parametrize("body", [b"\xff\xfe", b"a=" + b"x" * 100_000, b"&".join([b"a=b"] * 100)])
def test_a_form_that_is_none_is_refused(service: EventsThread, body: bytes) -> None:
    answer = requests.post(f"{service.url}/services/oauth2/token", data=body, timeout=60)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def test_a_broken_basic_header_is_refused(service: EventsThread) -> None:
    headers = {"Authorization": "Basic !!!"}
    form = {"grant_type": "client_credentials"}
    assert (
        requests.post(f"{service.url}/services/oauth2/token", data=form, headers=headers, timeout=60).status_code == 400
    )


@pytest.mark.parametrize("by", ["get", "post"])
def test_a_revoked_token_opens_nothing(service: EventsThread, by: str) -> None:
    token = service.token()
    where = f"{service.url}/services/oauth2/revoke"
    if by == "get":
        answer = requests.get(where, params={"token": token}, timeout=60)
    else:
        answer = requests.post(where, data={"token": token}, timeout=60)
    assert answer.status_code == 200
    headers = {"Authorization": f"Bearer {token}"}
    refused = requests.get(f"{service.url}/services/oauth2/userinfo", headers=headers, timeout=60)
    assert (refused.status_code, refused.text) == (403, "Bad_OAuth_Token")
    assert requests.get(where, params={"token": token}, timeout=60).status_code == 400

"""All of simple-salesforce's ways to log in.

It only knows Salesforce's addresses, so its HTTP session redirects those to here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from simple_salesforce import Salesforce
from simple_salesforce.exceptions import SalesforceAuthenticationFailed

from tests.support.accounts import SECRET, TOKEN, JwtApp
from tests.support.events import PASSWORD, USER, EventsThread

APP = {"consumer_key": "tidegate", "consumer_secret": PASSWORD}


class _Here(HTTPAdapter):
    """Sends what is meant for an address of Salesforce to the service."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def send(self, request: requests.PreparedRequest, *args: Any, **more: Any) -> requests.Response:
        request.url = re.sub(r"https://[a-z0-9.]+\.salesforce\.com", self._url, request.url or "")
        return super().send(request, *args, **more)


@pytest.fixture
def http(service: EventsThread) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.mount("https://", _Here(service.secure_url))
        session.trust_env = False  # a REQUESTS_CA_BUNDLE would win over what stands here
        session.verify = service.addresses["ca"]
        yield session


WAYS: dict[str, tuple[dict[str, str], str]] = {
    "password and security token": (
        {"username": "careful@shop", "password": SECRET, "security_token": TOKEN},
        "careful@shop",
    ),
    "SOAP without a token": ({"username": USER, "password": PASSWORD, "security_token": ""}, USER),
    "IP filtering": ({"username": USER, "password": PASSWORD, "organizationId": "00DTG0000000001"}, USER),
    "OAuth password": ({"username": "reader@shop", "password": SECRET, **APP}, "reader@shop"),
    "client credentials": (APP | {"domain": "tidegate.my"}, USER),
    "JWT": ({"username": "reader@shop", "consumer_key": "tidegate", "privatekey_file": ""}, "reader@shop"),
}


@pytest.mark.parametrize("way", WAYS)
def test_simple_salesforce_logs_in(service: EventsThread, http: requests.Session, jwt_app: JwtApp, way: str) -> None:
    arguments, user = WAYS[way]
    if "privatekey_file" in arguments:
        arguments = arguments | {"privatekey_file": str(jwt_app.private_key_file)}
    org = Salesforce(session=http, **arguments)
    assert service.secure_url.endswith(org.sf_instance)
    assert service.server.access.session(org.session_id).user_name == user
    assert org.describe()["sobjects"][0]["name"] == "Order_Shipped__e"
    assert org.api_usage["api-usage"].used > 0


@pytest.mark.parametrize(
    ("credentials", "code"),
    [
        ({"username": "careful@shop", "password": SECRET, "security_token": "x" * 24}, "INVALID_LOGIN"),
        ({"username": USER, "password": "x", **APP}, "invalid_grant"),
    ],
)
def test_a_refused_login_says_why(http: requests.Session, credentials: dict[str, str], code: str) -> None:
    try:
        Salesforce(session=http, **credentials)
    except SalesforceAuthenticationFailed as refused:  # kept, its frames would keep the connection open
        assert refused.code == code
    else:
        pytest.fail("logged in")

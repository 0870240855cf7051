"""The key for signing the JWT bearer flow's assertion, from PEM files and from Java key stores."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
import responses
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate

from connect.api import ConnectError, RetriableConnectError
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.config import SalesforceConfig
from connectors.salesforce.signing import signing_key
from tests.support.accounts import JwtApp
from tidegate.kit.config import parse, validate

LOGIN = {"salesforce.grant.type": "JWT_BEARER", "salesforce.username": "u", "salesforce.consumer.key": "app"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> JwtApp:
    return JwtApp(tmp_path_factory.mktemp("app"))


@pytest.fixture(scope="module")
def store(app: JwtApp, tmp_path_factory: pytest.TempPathFactory) -> Path:
    certificate = load_pem_x509_certificate(app.certificate.read_bytes())
    path = tmp_path_factory.mktemp("store") / "app.jks"
    locked = BestAvailableEncryption(b"confluent")
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"app", app.key, certificate, None, locked))
    return path


def config(**more: str) -> SalesforceConfig:
    return parse(SalesforceConfig, LOGIN | {f"salesforce.jwt.{k.replace('_', '.')}": v for k, v in more.items()})


def same(pem: bytes, app: JwtApp) -> bool:
    key = load_pem_private_key(pem, None)
    assert isinstance(key, RSAPrivateKey)
    return key.private_numbers() == app.key.private_numbers()


def test_a_key_store_is_read_from_a_file_and_from_the_configuration(app: JwtApp, store: Path) -> None:
    assert same(signing_key(config(keystore_path=str(store), keystore_password="confluent")), app)
    content = "data:text/plain;base64," + base64.b64encode(store.read_bytes()).decode()
    assert same(signing_key(config(keystore_file=content, keystore_password="confluent")), app)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"keystore_path": "/no/such.jks"}, "cannot read salesforce.jwt.keystore.path /no/such.jks"),
        (
            {"keystore_file": "data:text/plain;base64,AAAA"},
            "salesforce.jwt.keystore.file with salesforce.jwt.keystore.pass",
        ),
        ({"keystore_file": "data:text/plain;base64,$x"}, "is not Base64"),
        ({"privatekey_path": "/no/key.pem"}, "cannot read salesforce.jwt.privatekey.path"),
    ],
)
def test_a_key_that_cannot_be_read_names_its_place(more: Mapping[str, str], words: str) -> None:
    with pytest.raises(ConnectError, match=words):
        signing_key(config(**more))


def test_a_wrong_password_is_said_without_it(store: Path) -> None:
    with pytest.raises(ConnectError, match="another password") as raised:
        signing_key(config(keystore_path=str(store), keystore_password="guess"))
    assert "guess" not in str(raised.value)


def test_the_assertion_is_signed_with_the_stores_key(app: JwtApp, store: Path) -> None:
    made = config(keystore_path=str(store), keystore_password="confluent")
    with responses.RequestsMock() as mock:
        sent = mock.post(
            f"{made.instance}/services/oauth2/token", json={"access_token": "t", "instance_url": "https://o"}
        )
        client = SalesforceClient(made)
        client.log_in()
        client.close()
        form = dict(part.split("=", 1) for part in str(sent.calls[0].request.body).split("&"))
    claims = jwt.decode(form["assertion"], app.key.public_key(), algorithms=["RS256"], audience=made.instance)
    assert (claims["iss"], claims["sub"]) == ("app", "u")


def test_missing_keys_of_a_grant_and_invalid_key_stores_are_reported_at_validation() -> None:
    for more, key in (
        ({}, "salesforce.jwt.keystore.path"),
        ({"salesforce.jwt.keystore.file": "app.jks"}, "salesforce.jwt.keystore.file"),
        ({"salesforce.jwt.keystore.path": "x", "http.proxy.auth.scheme": "NTLM"}, "http.proxy.auth.scheme"),
    ):
        assert [value.key.name for value in validate(SalesforceConfig, LOGIN | more) if value.errors] == [key]


_FAULT = """<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:sf="urn:fault.partner.soap.sforce.com">
<soapenv:Body><soapenv:Fault><detail><sf:UnexpectedErrorFault><sf:exceptionCode>{}</sf:exceptionCode>
<sf:exceptionMessage>words</sf:exceptionMessage></sf:UnexpectedErrorFault></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>"""


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ({"status": 503, "body": "<html>down for maintenance<br>"}, True),
        ({"status": 500, "body": _FAULT.format("SERVER_UNAVAILABLE")}, True),
        ({"status": 500, "body": _FAULT.format("LOGIN_RATE_EXCEEDED")}, True),
        ({"status": 500, "body": _FAULT.format("INVALID_LOGIN")}, False),
    ],
)
def test_a_login_that_salesforce_cannot_take_now_is_tried_again(answer: Mapping[str, Any], passes: bool) -> None:
    client = SalesforceClient(parse(SalesforceConfig, {"salesforce.username": "u", "salesforce.password": "p"}))
    with responses.RequestsMock() as salesforce:
        salesforce.post("https://login.salesforce.com/services/Soap/u/60.0", **answer)
        with pytest.raises(
            RetriableConnectError if passes else ConnectError,
            match="refused the login: Authentication failed.*(words|maintenance)",
        ):
            client.log_in()
    client.close()

from __future__ import annotations

from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.access.accounts import ConnectedApp
from events.access.assertions import read_assertion
from events.access.certificates import public_key
from events.access.errors import GrantError, InvalidGrant, UnknownClient
from tests.support.accounts import JwtApp

NOW_S = 1_800_000_000
AUDIENCES = ("https://login.salesforce.com", "http://127.0.0.1:8090")
CLAIMS: dict[str, Any] = {
    "iss": "app",
    "sub": "shop@example.com",
    "aud": "https://login.salesforce.com",
    "exp": NOW_S + 60,
}


def read(jwt_app: JwtApp, assertion: str) -> str:
    apps = {"app": ConnectedApp("app", certificate=jwt_app.certificate), "bare": ConnectedApp("bare")}
    return read_assertion(assertion, apps, AUDIENCES, NOW_S * 1000).user_name


@pytest.mark.parametrize(
    "more", [{}, {"exp": str(NOW_S + 1)}, {"aud": ["x", AUDIENCES[1]]}, {"jti": "1", "iat": NOW_S + 999}]
)
def test_a_signed_assertion_names_its_user(jwt_app: JwtApp, more: dict[str, Any]) -> None:
    assert read(jwt_app, jwt_app.sign(CLAIMS | more)) == "shop@example.com"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"iss": "other"}, "client identifier invalid"),
        ({"iss": 5}, "client identifier invalid"),
        ({"iss": "bare"}, "invalid assertion"),
        ({"aud": "https://example.com"}, "audience is invalid"),
        ({"aud": None}, "invalid assertion"),
        ({"sub": None}, "invalid assertion"),
        ({"sub": 7}, "invalid assertion"),
        ({"exp": NOW_S}, "expired authorization code"),
        ({"exp": "soon"}, "invalid assertion"),
        ({"exp": None}, "invalid assertion"),
        ({"nbf": NOW_S * 10}, "invalid assertion"),
        ({"exp": NOW_S + 86_401}, "exp must be within a day"),
        ({"exp": NOW_S * 1000}, "exp must be within a day"),
    ],
)
def test_a_wrong_claim_is_refused_in_salesforces_words(jwt_app: JwtApp, more: dict[str, Any], said: str) -> None:
    claims = {name: value for name, value in (CLAIMS | more).items() if value is not None}
    with pytest.raises(GrantError, match=said):
        read(jwt_app, jwt_app.sign(claims))


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS512", "PS256"])
def test_another_algorithm_is_refused(jwt_app: JwtApp, algorithm: str) -> None:
    key = {"none": None, "HS256": "a" * 32}.get(algorithm, jwt_app.key)
    with pytest.raises(InvalidGrant, match="invalid assertion"):
        read(jwt_app, jwt.encode(CLAIMS, key, algorithm))


def test_another_key_or_changed_claims_are_refused(jwt_app: JwtApp, tmp_path: Path) -> None:
    header, _, signature = jwt_app.sign(CLAIMS).split(".")
    forged = jwt_app.sign(CLAIMS | {"sub": "admin"}).split(".")[1]
    for assertion in (JwtApp(tmp_path).sign(CLAIMS), f"{header}.{forged}.{signature}", f"{header}.{forged}."):
        with pytest.raises(InvalidGrant, match="invalid assertion"):
            read(jwt_app, assertion)


_ONE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_JSON = _ONE | st.lists(_ONE, max_size=2) | st.dictionaries(st.text(max_size=5), _ONE, max_size=2)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "crit"]), _JSON))
def test_any_claims_are_read_or_refused(jwt_app: JwtApp, claims: dict[str, Any]) -> None:
    with pytest.raises(GrantError):
        read(jwt_app, jwt_app.sign(claims | {"iss": "app"}))


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60) | st.lists(st.text("AZaz09-_=.é\0", max_size=20), max_size=5).map(".".join))
def test_any_text_is_no_assertion(jwt_app: JwtApp, text: str) -> None:
    with pytest.raises((InvalidGrant, UnknownClient)):
        read(jwt_app, text)


def test_a_key_is_read_from_a_certificate_or_alone(jwt_app: JwtApp, tmp_path: Path) -> None:
    assert public_key(jwt_app.certificate) == public_key(jwt_app.public_key)
    wrong = tmp_path / "wrong.pem"
    for content in (b"", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", jwt_app.private_key.encode()):
        wrong.write_bytes(content)
        with pytest.raises(ValueError, match=r"wrong\.pem is neither"):
            public_key(wrong)
    with pytest.raises(ValueError, match="cannot read"):
        public_key(tmp_path / "none.pem")

"""JSON Web Tokens: parsing and validation."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from broker.security.sasl.jwks import Jwks, keys_of_set
from broker.security.sasl.jwt import InvalidToken, UnsecuredTokens, read_jwt
from broker.security.sasl.mechanism import InvalidCredentials
from broker.security.sasl.oauthbearer import client_response
from tests.broker.security import conftest
from tests.broker.security.conftest import encoded, number, part
from tests.support.broker import BrokerThread
from tests.support.broker import settings as broker_settings
from tidegate.kit.jaas import LoginModule

NOW = int(time.time() * 1000)
few = settings(max_examples=60, deadline=None)


def unsecured(**claims: Any) -> str:
    return conftest.unsecured(**{"iat": NOW // 1000 - 5, **claims})


def validator(**options: str) -> UnsecuredTokens:
    return UnsecuredTokens(LoginModule("x", {f"unsecuredValidator{name}": value for name, value in options.items()}))


def test_an_unsecured_token_says_who_and_until_when() -> None:
    token = validator().validate(unsecured(exp=NOW // 1000 + 60), NOW)
    assert (token.principal_name, token.expires_at_ms) == ("alice", (NOW // 1000 + 60) * 1000)
    assert validator(PrincipalClaimName="name").validate(unsecured(name="carol"), NOW).principal_name == "carol"
    scoped = validator(RequiredScope="b a", ScopeClaimName="scp")
    assert scoped.validate(unsecured(scp=["a", "b", "c"]), NOW).principal_name == "alice"


@pytest.mark.parametrize(
    ("claims", "options", "scope"),
    [
        ({"exp": NOW / 1000 - 1}, {}, None),
        ({"exp": None}, {}, None),
        ({"exp": "soon"}, {}, None),
        ({"exp": True}, {}, None),
        ({"exp": 1e300}, {}, None),
        ({"iat": NOW / 1000 + 60}, {}, None),
        ({"iat": NOW / 1000 + 60, "exp": NOW / 1000 + 50}, {"AllowableClockSkewMs": "100000"}, None),
        ({"sub": ""}, {}, None),
        ({"sub": None}, {}, None),
        ({"scope": "a b"}, {"RequiredScope": "a"}, "[a]"),
        ({"scope": ["b"]}, {"RequiredScope": "a b"}, "[a, b]"),
    ],
)
def test_an_unsecured_token_is_refused(claims: dict[str, Any], options: dict[str, str], scope: str | None) -> None:
    with pytest.raises(InvalidToken) as refused:
        validator(**options).validate(unsecured(**claims), NOW)
    assert refused.value.scope == scope


def test_a_clock_may_differ() -> None:
    assert validator(AllowableClockSkewMs="5000").validate(unsecured(exp=NOW / 1000 - 1, iat=1), NOW)
    with pytest.raises(ValueError, match="AllowableClockSkewMs"):
        validator(AllowableClockSkewMs="-1")


def test_a_signature_makes_no_unsecured_token() -> None:
    with pytest.raises(InvalidToken):
        validator().validate(unsecured() + "AAAA", NOW)
    with pytest.raises(InvalidToken):
        validator().validate(f"{part({'alg': 'HS256'})}.{unsecured().split('.')[1]}.", NOW)


@few
@given(
    st.text("abcdeyJ.-_=+/09", max_size=80)
    | st.builds(
        lambda a, b, c: f"{encoded(a)}.{encoded(b)}.{c}",
        st.binary(max_size=20),
        st.binary(max_size=20),
        st.text(max_size=5),
    )
)
def test_any_text_is_a_token_or_refused(text: str) -> None:
    try:
        jwt = read_jwt(text)
    except InvalidToken:
        return
    assert isinstance(jwt.claims, dict)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@few
@given(st.dictionaries(st.sampled_from(["sub", "exp", "iat", "scope", "aud", "nbf"]), JSON), JSON)
def test_any_claims_are_taken_or_refused(claims: dict[str, Any], alg: Any) -> None:
    for header in ({"alg": alg}, {"alg": "none"}):
        token = f"{part(header)}.{encoded(json.dumps(claims).encode())}."
        try:
            validator(RequiredScope="a").validate(token, NOW)
        except InvalidToken:
            pass


@few
@given(st.binary(max_size=60) | st.binary(max_size=20).map(lambda data: b"n,,\x01auth=Bearer " + data + b"\x01\x01"))
def test_any_message_is_a_response_or_refused(message: bytes) -> None:
    try:
        client_response(message)
    except InvalidCredentials:
        pass


def test_a_response_has_token_name_and_extensions() -> None:
    told = client_response(b"n,a=bob,\x01auth=Bearer a.b.c=\x01traceId=1 2\x01\x01")
    assert (told.token, told.authzid, told.extensions) == ("a.b.c=", "bob", {"traceId": "1 2"})


CURVE = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_set() -> bytes:
    point, rsa_numbers = CURVE.public_key().public_numbers(), RSA.public_key().public_numbers()
    keys = [
        {"kty": "EC", "crv": "P-256", "kid": "e", "x": number(point.x), "y": number(point.y)},
        {"kty": "RSA", "kid": "r", "n": number(rsa_numbers.n), "e": number(rsa_numbers.e)},
        {"kty": "RSA", "kid": "enc", "use": "enc", "n": "x"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
    ]
    return json.dumps({"keys": keys}).encode()


@pytest.mark.parametrize("alg", ["ES256", "RS256", "RS384", "RS512", "PS256", "PS512"])
def test_signatures_of_each_kind_are_verified(alg: str) -> None:
    keys = Jwks("file:/none", 1)
    keys._keys = keys_of_set(key_set())
    signed = f"{part({'alg': alg, 'kid': alg[0].lower() if alg[0] != 'P' else 'r'})}.{part({})}".encode()
    digest = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[alg[2:]]
    if alg.startswith("ES"):
        halves = decode_dss_signature(CURVE.sign(signed, ec.ECDSA(digest)))
        signature = b"".join(half.to_bytes(32, "big") for half in halves)
    else:
        pad = padding.PKCS1v15() if alg[0] == "R" else padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        signature = RSA.sign(signed, pad, digest)
    keys.verify(read_jwt(f"{signed.decode()}.{encoded(signature)}"))
    wrong = bytearray(signature)
    wrong[5] ^= 1
    for bad in (bytes(wrong), signature[:-1], b""):
        with pytest.raises(InvalidToken, match="signature"):
            keys.verify(read_jwt(f"{signed.decode()}.{encoded(bad)}"))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys":5}', b'{"keys":[{"kty":"RSA","e":"AQAB"}]}'])
def test_an_invalid_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        keys_of_set(text)


def test_keys_are_fetched_anew_when_a_token_names_another(tmp_path: Path) -> None:
    import asyncio

    async def run() -> None:
        file = tmp_path / "keys.json"
        file.write_text('{"keys": []}')
        keys = Jwks(file.as_uri(), 3_600_000)
        await keys.load()
        task = asyncio.create_task(keys.run())
        file.write_bytes(key_set())
        signed = f"{part({'alg': 'RS256', 'kid': 'r'})}.{part({})}"
        signature = RSA.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        jwt = read_jwt(f"{signed}.{base64.urlsafe_b64encode(signature).decode()}")
        with pytest.raises(InvalidToken, match="no key fits"):
            keys.verify(jwt)
        async with asyncio.timeout(60):
            while not keys._keys:
                await asyncio.sleep(0.01)
        keys.verify(jwt)
        task.cancel()

    asyncio.run(run())


def test_a_listener_that_takes_tokens_nobody_signed_says_so_in_the_log(tmp_path: Path) -> None:
    """They are Kafka's default."""
    login = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    module = f'{login} unsecuredValidatorRequiredScope="";'
    configuration = broker_settings(tmp_path) | {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": module,
        "inter.broker.listener.name": "SASL_PLAINTEXT",
    }
    with capture_logs() as logged, BrokerThread(configuration):
        pass
    (said,) = [line for line in logged if "nobody signed" in line["event"]]
    assert said["log_level"] == "warning" and said["listener"] == "SASL_PLAINTEXT"

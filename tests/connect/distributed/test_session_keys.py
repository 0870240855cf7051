"""Signatures of requests between workers, and their rejection with Kafka Connect's messages."""

from __future__ import annotations

import pytest

from connect.errors import BadRequest, Forbidden, StartingUp
from connect.group.session_keys import new_key, require_signature, same_kind, signed
from connect.stores import SessionKey

BODY = b'[{"task.class":"T"}]'
KEY = SessionKey(bytes(range(32)), "HmacSHA256", 1)
ACCEPTED = ["HmacSHA256"]


def test_a_signature_is_the_hmac_of_the_body():
    headers = signed(BODY, KEY, "HmacSHA256")
    assert headers == {
        # the result of javax.crypto.Mac and Base64 for the same key and body
        "X-Connect-Authorization": "FFL9KqpwZ62htyFSzz4DHB1kjZbTch9ZWIiDIYhWMXw=",
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }
    require_signature(headers, BODY, KEY, ACCEPTED)


def test_a_request_with_an_invalid_signature_is_refused():
    headers = signed(BODY, KEY, "HmacSHA256")
    with pytest.raises(BadRequest, match="missing required signature"):
        require_signature({}, BODY, KEY, ACCEPTED)
    with pytest.raises(Forbidden, match="invalid signature"):
        require_signature(headers, BODY + b" ", KEY, ACCEPTED)
    with pytest.raises(Forbidden):
        require_signature(headers, BODY, new_key("HmacSHA256", None, 2), ACCEPTED)
    with pytest.raises(StartingUp):
        require_signature(headers, BODY, None, ACCEPTED)
    with pytest.raises(BadRequest, match="'HmacSHA256' key signing algorithm"):
        require_signature(headers, BODY, KEY, ["HmacSHA512"])
    with pytest.raises(BadRequest, match="base64"):
        require_signature({**headers, "X-Connect-Authorization": "?"}, BODY, KEY, ACCEPTED)


@pytest.mark.parametrize(
    ("algorithm", "bits", "size"),
    [("HmacSHA256", None, 32), ("HmacSHA512", None, 64), ("HmacSHA1", None, 64), ("HmacSHA256", 128, 16)],
)
def test_keys_have_the_size_that_java_would_give_them(algorithm, bits, size):
    key = new_key(algorithm, bits, 1)
    assert len(key.secret) == size and same_kind(key, algorithm, bits)
    assert not same_kind(key, algorithm, (bits or 8 * size) + 8)

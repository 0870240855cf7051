"""Known secrets are not shown to people."""

from __future__ import annotations

import base64
import json
import threading
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.processor_time import processor_time
from tidegate.kit.config import Password
from tidegate.kit.scrubbing import HIDDEN, Secrets, knowing, noted_config, scrubbed, scrubbed_event


@given(st.text(min_size=8).filter(lambda text: text.strip()), st.text(), st.text())
def test_a_secret_is_hidden_as_it_is_and_as_it_is_written(secret: str, before: str, after: str) -> None:
    with knowing(Secrets()):
        Password(secret)
        for form in (secret, json.dumps(secret)[1:-1], quote(secret, "", errors="replace"), repr(secret)[1:-1]):
            assert form not in scrubbed(before + form + after).replace("[hidden]", "\0") or form == "\0"
    assert scrubbed(secret) == secret, "nobody wants to know any more"


def test_a_long_secret_that_repeats_itself_is_hidden_in_linear_time() -> None:
    secrets, secret = Secrets(), "a" * 100_000 + "b"
    secrets.add(secret)
    with processor_time(1, "a secret of 100,000 characters"):
        assert secrets.scrub(f"x{secret}y") == "x[hidden]y"
        assert secrets.scrub("a" * 200_000) == "a" * 200_000


def test_a_short_secret_is_hidden_where_it_is_a_word() -> None:
    with knowing(Secrets()):
        Password("gate")
        assert scrubbed("tidegate says 'gate' of gate@host, gates:gate") == (
            "tidegate says '[hidden]' of [hidden]@host, gates:[hidden]"
        )


def test_an_empty_secret_hides_nothing() -> None:
    with knowing(Secrets()):
        Password("")
        Password(" ")
        assert scrubbed("a b") == "a b"


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"connection.password": "s3cret-one"}, "s3cret-one"),
        ({"connection.url": "jdbc:x://h/d?user=u&password=s3cret-one&ssl=true"}, "s3cret-one"),
        ({"store.url": "https://user:s3cret-one@host/"}, "s3cret-one"),
        ({"producer.override.sasl.jaas.config": 'X required username="u" password="s3cret-one";'}, "s3cret-one"),
        ({"basic.auth.user.info": "user:s3cret-one"}, base64.b64encode(b"user:s3cret-one").decode()),
        ({"transforms.x.api_key": "s3cret-one"}, "s3cret-one"),
    ],
)
def test_keys_with_well_known_secret_names_are_always_hidden(properties: dict[str, str], text: str) -> None:
    with knowing(Secrets()):
        noted_config(properties)
        assert text not in scrubbed(f"it said {text}!")
        assert scrubbed("jdbc:x://h/d?user=u") == "jdbc:x://h/d?user=u"


def test_secrets_known_in_one_context_are_unknown_in_another() -> None:
    with knowing(Secrets()):
        Password("s3cret-one")
        seen: list[str] = []
        thread = threading.Thread(target=lambda: seen.append(scrubbed("s3cret-one")))
        thread.start()
        thread.join()
        assert seen == ["s3cret-one"]
        with knowing(Secrets()):
            assert scrubbed("s3cret-one") == "s3cret-one"


def test_lines_of_the_log_are_scrubbed_inside_too() -> None:
    with knowing(Secrets()):
        Password("s3cret-one")
        event = {
            "event": "x s3cret-one",
            "n": 3,
            "list": ["s3cret-one", {"a": "s3cret-one"}],
            "error": OSError("s3cret-one"),
        }
        assert "s3cret-one" not in json.dumps(scrubbed_event(None, "info", event))
        assert scrubbed_event(None, "info", event)["n"] == 3


def test_tokens_that_are_renewed_do_not_grow_without_bound() -> None:
    secrets = Secrets()
    for n in range(3000):
        secrets.add(f"token-number-{n}")
    assert len(secrets._values) == 1000
    assert secrets.scrub("token-number-2999") == "[hidden]"


def test_a_password_of_a_password_is_the_same() -> None:
    assert Password(Password("x")).reveal() == "x"


def test_a_text_that_a_password_is_added_to_is_a_secret() -> None:
    secrets = Secrets()
    with knowing(secrets):
        token = "Bearer " + Password("hunter2hunter2") + "\r\n"
    assert str(token) == f"{token}" == repr(token) == HIDDEN
    assert isinstance(token, Password) and token.reveal() == "Bearer hunter2hunter2\r\n"
    assert secrets.scrub("it was Bearer hunter2hunter2\r\n") == f"it was {HIDDEN}"


def test_a_log_line_hides_passwords_that_nobody_took_note_of() -> None:
    event = {"event": "x", "value": Password("hunter2"), "more": {"list": [Password("hunter2")]}, "text": "a"}
    assert json.loads(json.dumps(scrubbed_event(None, "info", event))) == {
        "event": "x",
        "value": HIDDEN,
        "more": {"list": [HIDDEN]},
        "text": "a",
    }

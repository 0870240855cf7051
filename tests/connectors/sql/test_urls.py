"""jdbc: URLs mean here what they mean to the Java drivers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api import ConnectError, Password
from connectors.sql.urls import parse_jdbc_url


@pytest.mark.parametrize(
    "url, shown",
    [
        ("jdbc:sqlite:/tmp/retail.db", "sqlite:/tmp/retail.db"),
        ("jdbc:sqlite:relative.db?journal_mode=WAL", "sqlite:relative.db"),
        ("jdbc:sqlite:", "sqlite::memory:"),
        ("jdbc:postgresql://127.0.0.1:5432/numbers", "postgresql://127.0.0.1:5432/numbers"),
        ("jdbc:postgresql://a:1,b/numbers", "postgresql://a:1,b:5432/numbers"),
        ("jdbc:postgresql:numbers", "postgresql://localhost:5432/numbers"),
        ("jdbc:postgresql://[::1]:5433/n", "postgresql://[::1]:5433/n"),
        ("jdbc:mysql://127.0.0.1:3306/customerdb?useSSL=false", "mysql://127.0.0.1:3306/customerdb"),
        ("jdbc:mariadb://h/d", "mysql://h:3306/d"),
    ],
)
def test_a_url_names_a_place(url: str, shown: str) -> None:
    assert str(parse_jdbc_url(url)) == shown


def test_the_keys_win_over_the_url() -> None:
    database = parse_jdbc_url("jdbc:postgresql://h/d?user=a&password=x", "b", Password("y"))
    assert database.libpq_uri().startswith("postgresql://b:y@h:5432/d?")
    assert (
        parse_jdbc_url("jdbc:postgresql://h/d?user=a&password=x").libpq_uri().startswith("postgresql://a:x@h:5432/d?")
    )


def test_credentials_are_escaped() -> None:
    database = parse_jdbc_url("jdbc:postgresql://h/d", "a@b", Password("p:/?#"))
    assert database.libpq_uri().startswith("postgresql://a%40b:p%3A%2F%3F%23@h:5432/d?")


def test_drivers_parameters_are_translated() -> None:
    url = "jdbc:postgresql://h/d?ssl=true&ApplicationName=x&currentSchema=s&targetServerType=primary&prepareThreshold=0"
    assert parse_jdbc_url(url).parameters == {
        "sslmode": "verify-full",
        "application_name": "x",
        "options": "-csearch_path=s",
        "target_session_attrs": "read-write",
    }


def test_several_hosts_reach_sqlalchemy_too() -> None:
    url = parse_jdbc_url("jdbc:postgresql://a:1,b/d").sqlalchemy_url()
    assert url.query == {"host": "a,b", "port": "1,5432"}


@pytest.mark.parametrize(
    "url, message",
    [
        ("postgresql://h/d", "is not a jdbc: URL; it should look like"),
        ("jdbc:derby:memory:x", "there is no driver for such jdbc:derby: URLs; there is one for postgresql"),
        ("jdbc:postgresql://h:notaport/d", "'h:notaport' is not a host"),
    ],
)
def test_errors_are_reported(url: str, message: str) -> None:
    with pytest.raises(ConnectError, match=message):
        parse_jdbc_url(url)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(ConnectError) as refused:
        parse_jdbc_url("postgresql://me:s3cret@h/d?password=s3cret")
    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in str(parse_jdbc_url("jdbc:postgresql://h/d?password=s3cret"))


@given(st.text())
def test_any_text_is_taken_apart_or_refused(text: str) -> None:
    for url in (text, f"jdbc:{text}", f"jdbc:postgresql:{text}", f"jdbc:sqlite:{text}"):
        try:
            str(parse_jdbc_url(url))
        except ConnectError as error:
            assert str(error)

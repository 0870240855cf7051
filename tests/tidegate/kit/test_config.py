"""Typed configuration keys."""

import pytest

from tidegate.kit.config import (
    HIDDEN,
    KeyType,
    Password,
    all_of,
    at_least,
    between,
    config,
    distinct,
    family,
    inherited,
    key,
    keys_of,
    nearest_key,
    one_of,
    parse,
    unknown_keys,
    valid_regexes,
    validate,
)
from tidegate.kit.errors import ConfigError, Problem


@config
class Shared:
    batch: int = key("batch.max", default=500, type=KeyType.INT, check=at_least(1), doc="Rows a batch.")


@config
class Sink(Shared):
    url: str = key("http.url", doc="Where to.", importance="high")
    secret: Password | None = key("http.password", default=None, doc="Password.")
    names: list[str] = key("names", default=[], doc="Names.")
    mode: str = key("mode", default="fast", check=one_of("fast", "safe"), aliases=("http.mode",), doc="How.")
    ratio: float = key("ratio", default=0.5, check=between(0, 1), doc="Share.")
    deep: bool = key("deep", default=False, doc="Deep.")
    overrides: dict[str, str] = family("producer.override.", doc="Client settings.")

    def problems(self):
        if self.mode == "safe" and not self.names:
            yield Problem("names", "names is needed in mode safe")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, 'Missing required configuration "http.url" which has no default value.'),
        (
            {"http.url": "x", "batch.max": "many"},
            "Invalid value many for configuration batch.max: Not a number of type INT",
        ),
        ({"http.url": "x", "batch.max": "0"}, "Invalid value 0 for configuration batch.max: Value must be at least 1"),
        (
            {"http.url": "x", "batch.max": str(2**31)},
            f"Invalid value {2**31} for configuration batch.max: Not a number of type INT",
        ),
        (
            {"http.url": "x", "mode": "slow"},
            "Invalid value slow for configuration mode: String must be one of: fast, safe",
        ),
        ({"http.url": "x", "ratio": "2"}, "Invalid value 2 for configuration ratio: Value must be no more than 1"),
        (
            {"http.url": "x", "deep": "yes"},
            "Invalid value yes for configuration deep: Expected value to be either true or false",
        ),
        ({"http.url": "x", "mode": "safe"}, "names is needed in mode safe"),
        ({"http.url": None}, "Invalid value null for configuration http.url: must not be null"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(value, problem):
    with pytest.raises(ConfigError) as raised:
        parse(Sink, value)
    assert raised.value.message == problem


def test_every_problem_is_reported_at_once():
    with pytest.raises(ConfigError) as raised:
        parse(Sink, {"batch.max": "x", "ratio": "y"})
    assert [problem.key for problem in raised.value.problems] == ["batch.max", "http.url", "ratio"]


def test_values_are_read_as_kafka_reads_them():
    config = {
        "http.url": " x ",
        "names": "a, b,c",
        "deep": "TRUE",
        "ratio": 1,
        "producer.override.linger.ms": 5,
        "http.mode": "safe",
    }
    parsed = parse(Sink, config)
    assert (parsed.url, parsed.names, parsed.deep, parsed.ratio) == ("x", ["a", "b", "c"], True, 1.0)
    assert parsed.overrides == {"linger.ms": "5"}
    assert parsed.mode == "safe", "an alias is read when the name is absent"


def test_a_list_default_is_not_shared():
    first, second = parse(Sink, {"http.url": "x"}), parse(Sink, {"http.url": "x"})
    first.names.append("a")
    assert second.names == []


def test_a_secret_never_prints():
    parsed = parse(Sink, {"http.url": "x", "http.password": "hunter2"})
    assert "hunter2" not in f"{parsed} {parsed.secret} {parsed.secret!r}"
    assert parsed.secret.reveal() == "hunter2"
    (result,) = (r for r in validate(Sink, {"http.url": "x", "http.password": "hunter2"}) if r.key.secret)
    assert str(result.value) == HIDDEN


def test_parents_keys_come_first_and_validate_never_raises():
    assert [k.name for k in keys_of(Sink)][:2] == ["batch.max", "http.url"]
    by_name = {result.key.name: result for result in validate(Sink, {"mode": 3, "http.url": ["a"]})}
    assert by_name["mode"].errors and not by_name["http.url"].errors


def test_unknown_keys_are_found_with_the_nearest_known_one():
    assert unknown_keys(["http.url", "bach.max", "producer.override.x"], keys_of(Sink), ["producer.override."]) == [
        "bach.max"
    ]
    assert nearest_key("bach.max", keys_of(Sink)) == "batch.max"
    assert nearest_key("zzz", keys_of(Sink)) is None


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("a,b", None),
        ("", None),
        ("a,,b", "Values must not be empty"),
        ("a,a", "Values must not be duplicated"),
        ("a,(", "Must be a comma-separated list of regular expressions"),
    ],
)
def test_the_first_check_that_finds_fault_says_what_is_wrong(value: str, wrong: str | None) -> None:
    @config
    class Lists:
        names: list[str] = key("names", default=[], check=all_of(distinct, valid_regexes), doc="Names.")

    (judged,) = validate(Lists, {"names": value})
    assert not judged.errors if wrong is None else wrong in judged.errors[0]


@config
class Client:
    url: str = key("connection.url", default="", doc="Where.")
    urls: list[str] = key("urls", default=[], doc="Where else.")
    token: str = key("api.token", default="", doc="A secret that was declared as text.")
    password: Password | None = key("password", default=None, doc="Password.")
    overrides: dict[str, str] = family("override.", doc="Settings.")


def test_a_configuration_that_is_printed_tells_no_secret():
    secret = "hunter22"
    config = {
        "connection.url": f"jdbc:postgresql://h/d?user=a&password={secret}",
        "urls": f"https://bob:{secret}@h/,https://h/",
        "api.token": secret,
        "password": secret,
        "override.sasl.jaas.config": f'x required username="a" password="{secret}";',
        "override.url": f"https://bob:{secret}@h/",
        "override.linger.ms": "5",
    }
    settings = parse(Client, config)
    for text in (repr(settings), str(settings), f"{settings}", format(settings)):
        assert secret not in text
        assert "jdbc:postgresql://h/d?user=a&password=[hidden]" in text and "'linger.ms': '5'" in text
    assert settings.token == settings.password.reveal() == secret
    assert settings.overrides["url"] == "https://bob:hunter22@h/"


def test_a_key_of_a_parent_is_declared_again_with_what_differs():
    @config
    class Small(Shared):
        batch: int = inherited(default=5, check=between(1, 9))

    assert (parse(Shared, {}).batch, parse(Small, {}).batch) == (500, 5)
    (declared,) = keys_of(Small)
    assert (declared.name, declared.type, declared.doc, declared.valid) == (
        "batch.max", KeyType.INT, "Rows a batch.", "[1,...,9]",
    )  # fmt: skip
    with pytest.raises(ConfigError, match="batch.max"):
        parse(Small, {"batch.max": "10"})
    assert parse(Shared, {"batch.max": "10"}).batch == 10

"""Configurations that are large, deep or slow to judge, from a user who may manage a few connectors."""

from __future__ import annotations

from typing import Any, Final

from tests.hostile.http_attacks import OUTSIDERS, ask
from tests.hostile.siege import Attack, Target

__all__ = ["ATTACKS"]

_FILE: Final = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_VALIDATE: Final = "/connector-plugins/FileStreamSinkConnector/config/validate"


def _validate(target: Target, config: dict[str, Any]) -> None:
    ask(target, "PUT", _VALIDATE, {"name": "mallory", "connector.class": _FILE, "topics": "mallory", **config})


def deep_json(target: Target) -> None:
    for data in (
        b"[" * 1_000_000,
        b'{"config":' * 200_000,
        b'{"name":"mallory","config":' + b"[" * 100_000,
        b"9" * 1_000_000,
    ):
        ask(target, "POST", "/connectors", data)
        ask(target, "PUT", "/connectors/mallory/config", data)
        ask(target, "PATCH", "/connectors/mallory/offsets", data)
        ask(target, "PUT", _VALIDATE, data)


def odd_content(target: Target) -> None:
    body = b'{"name":"other","config":{"connector.class":"x"}}'
    for kind in ("", "text/plain", "application/xml", "application/x-www-form-urlencoded", "x" * 10_000):
        answer = ask(target, "POST", "/connectors", body, kind=kind)
        assert answer is None or answer.status_code >= 400, answer.text
    ask(target, "POST", "/connectors", b"x" * 33_000_000)


def large_configurations(target: Target) -> None:
    _validate(target, {f"key.{number}": "x" for number in range(50_000)})
    _validate(target, {"file": "x" * 4_000_000})
    _validate(target, {"topics": ",".join(f"t{number}" for number in range(50_000))})
    _validate(target, {"errors.deadletterqueue.topic.name": "a" * 1_000_000, "tasks.max": "9" * 10_000})


def many_transforms(target: Target) -> None:
    names = [f"t{number}" for number in range(1_000)]
    kind = "org.apache.kafka.connect.transforms.RegexRouter"
    config = {f"transforms.{name}.type": kind for name in names}
    _validate(target, {"transforms": ",".join(names), **config})
    _validate(target, {"transforms": ",".join(["t"] * 5_000), "transforms.t.type": kind})


def slow_patterns(target: Target) -> None:
    kind = "org.apache.kafka.connect.transforms.RegexRouter"
    for pattern in ("(a+)+$", "(" * 5_000, "(a|a)*" * 200, "a{1000}{1000}{1000}", "(?=" * 3_000, "[" * 10_000, "\\"):
        _validate(target, {"topics.regex": pattern})
        _validate(target, {"transforms": "t", "transforms.t.type": kind, "transforms.t.regex": pattern, "transforms.t.replacement": "$1"})  # fmt: skip


def odd_classes(target: Target) -> None:
    for name in ("os:system", "builtins:eval", "../x", "\0", "a" * 100_000, "subprocess:Popen", "", "x.y.z:", "tests.support.crowd:CrowdConnector"):  # fmt: skip
        ask(target, "PUT", "/connector-plugins/" + (name[:2_000].replace("/", "%2F").replace("\0", "%00") or "x") + "/config/validate", {"connector.class": name})  # fmt: skip
        _validate(target, {"key.converter": name, "transforms": "t", "transforms.t.type": name})
        ask(target, "GET", f"/connector-plugins/{name[:2_000].replace('/', '%2F')}/config")


def odd_names(target: Target) -> None:
    for name in ("mallory/..", "mallory%2F..%2Fx", "mallory%00", "mallory" + "a" * 30_000, "mallory%0A", "mallory?x"):
        for tail in (
            "",
            "/config",
            "/status",
            "/tasks",
            "/tasks/-1/status",
            "/tasks/999999999999/restart",
            "/offsets",
            "/topics",
        ):
            ask(target, "GET", f"/connectors/{name}{tail}")
    for query in ("expand=" + "status&expand=" * 5_000, "expand=%FF", "includeTasks=" + "x" * 30_000):
        ask(target, "GET", f"/connectors?{query}")
        ask(target, "POST", f"/connectors/mallory/restart?{query}")


def of_others(target: Target) -> None:
    """The user is refused where it has no right."""
    config = {"connector.class": _FILE, "topics": "x", "file": "/tmp/never"}
    for method, path, body in (
        ("POST", "/connectors", {"name": "other", "config": config}),
        ("PUT", "/connectors/other/config", config),
        ("DELETE", "/connectors/other", None),
        ("PUT", "/admin/loggers/root", {"level": "TRACE"}),
        ("PUT", "/connectors/other/stop", None),
        ("GET", "/connectors/other/config", None),
        ("POST", "/connectors/mallory/tasks", []),
        ("PUT", "/connectors/mallory/fence", {}),
    ):
        answer = ask(target, method, path, body)
        assert answer is None or answer.status_code in (400, 403, 404), f"{method} {path}: {answer.text[:200]}"


ATTACKS: Final[list[Attack]] = [
    *OUTSIDERS,
    deep_json,
    odd_content,
    large_configurations,
    many_transforms,
    slow_patterns,
    odd_classes,
    odd_names,
    of_others,
]

"""Keys of Confluent's HTTP sink V2: up to fifteen APIs below one address, each for its own topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from connect.api import (
    ConnectError,
    KeyType,
    Password,
    Problem,
    between,
    config,
    family,
    key,
    keys_of,
    one_of,
    parse,
    validate,
)
from connectors.http.config import HttpAccess, HttpSinkConfig, http_url
from connectors.http.settings import HttpSettings

__all__ = ["HttpSinkV2Config"]

_MOST: Final = 15
_KEYS: Final = {
    "http.request.method": "request.method",
    "http.request.headers": "headers",
    "http.request.headers.separator": "header.separator",
    "request.body.format": "request.body.format",
    "behavior.on.null.values": "behavior.on.null.values",
    "max.batch.size": "batch.max.size",
    "batch.key.pattern": "batch.key.pattern",
    "batch.prefix": "batch.prefix",
    "batch.suffix": "batch.suffix",
    "batch.separator": "batch.separator",
    "batch.json.as.array": "batch.json.as.array",
    "regex.patterns": "regex.patterns",
    "regex.replacements": "regex.replacements",
    "regex.separator": "regex.separator",
    "max.retries": "max.retries",
    "retry.backoff.policy": "retry.backoff.policy",
    "retry.backoff.ms": "retry.backoff.ms",
    "retry.on.status.codes": "retry.on.status.codes",
    "http.connect.timeout.ms": "http.connect.timeout.ms",
    "http.request.timeout.ms": "http.request.timeout.ms",
}
"""Maps the names of an API's keys, after ``apiN.``, to the names in the first sink."""
_BACK: Final = {first: key_name for key_name, first in _KEYS.items()} | {"http.api.url": "http.api.path"}
_DEFAULTS: Final = {"request.body.format": "json", "max.retries": "5"}
_NOT_DONE: Final = ("http.path.parameters", "http.request.body")


@config
class HttpSinkV2Config(HttpAccess):
    """Where each topic's records are sent."""

    base_url: str = key(
        "http.api.base.url",
        check=http_url,
        doc="What the addresses of all APIs begin with.",
        importance="high",
        group="Connection",
    )
    count: int = key(
        "apis.num",
        default=1,
        type=KeyType.INT,
        check=between(1, _MOST),
        doc="How many APIs there are; the keys of each begin with api1., api2. and so on: http.api.path and topics, "
        "and those of the first sink as " + ", ".join(_KEYS) + ".",
        importance="high",
        group="Connection",
    )
    on_error: str = key(
        "behavior.on.error",
        default="IGNORE",
        check=one_of("FAIL", "IGNORE", "LOG", ignore_case=True),
        doc="Records that an API does not take: logged only, or given to errors.* (the task fails where they are not tolerated).",
        importance="low",
        group="Connection",
    )
    auth: str = key(
        "auth.type",
        default="NONE",
        check=one_of("NONE", "BASIC", "OAUTH2", "BEARER", "API_KEY", ignore_case=True),
        doc="How requests say who sends them.",
        importance="high",
        group="Authentication",
    )
    api_key_location: str = key(
        "api.key.location",
        default="HEADER",
        check=one_of("HEADER", "QUERY", ignore_case=True),
        doc="With auth.type=API_KEY, where the key is sent.",
        group="Authentication",
    )
    api_key_name: str = key(
        "api.key.name", default="", doc="The header's or the parameter's name.", group="Authentication"
    )
    api_key: Password = key("api.key.value", default="", doc="The key itself.", group="Authentication")
    apis: dict[str, str] = family("api", doc="Keys of the APIs: api1.http.api.path, api1.topics ...")

    def settings_of(self, topic: str) -> HttpSettings:
        """Raises ConnectError for a topic that no API takes."""
        settings = self._by_topic.get(topic)
        if settings is None:
            raise ConnectError(f"no API takes records of {topic}: name it in api1.topics or another one's")
        return settings

    @cached_property
    def _by_topic(self) -> Mapping[str, HttpSettings]:
        """The last API that names a topic takes it."""
        by_topic: dict[str, HttpSettings] = {}
        for number in range(1, self.count + 1):
            api_keys = self._keys_of_api(number)
            settings = self._with_api_key(
                replace(parse(HttpSinkConfig, self._as_first(api_keys)).settings, fills_headers=True)
            )
            by_topic |= dict.fromkeys(_items(api_keys.get("topics", "")), settings)
        return by_topic

    def _with_api_key(self, settings: HttpSettings) -> HttpSettings:
        if self.auth.upper() != "API_KEY":
            return settings
        name, value = self.api_key_name, self.api_key.reveal()
        if self.api_key_location.upper() == "QUERY":
            return replace(settings, parameters={**settings.parameters, name: value})
        return replace(settings, headers=[*settings.headers, (name, value)])

    def _keys_of_api(self, number: int) -> dict[str, str]:
        prefix = f"{number}."
        return {name.removeprefix(prefix): value for name, value in self.apis.items() if name.startswith(prefix)}

    def _as_first(self, api_keys: Mapping[str, str]) -> dict[str, Any]:
        """An API as a configuration of the first sink."""
        values: dict[str, Any] = {declared.name: getattr(self, declared.attribute) for declared in keys_of(HttpAccess)}
        values = {name: value for name, value in values.items() if value is not None}
        values |= {f"https.{name}": value for name, value in self.https.items()}
        values |= _DEFAULTS | {_KEYS[name]: value for name, value in api_keys.items() if name in _KEYS}
        if self.auth.upper() == "API_KEY":
            values["auth.type"] = "NONE"
        separator = api_keys.get("http.request.headers.separator") or "|"
        headers = (api_keys.get("http.request.headers", ""), api_keys.get("http.request.sensitive.headers", ""))
        values["headers"] = separator.join(filter(None, headers))
        values["behavior.on.error"] = self.on_error
        values["http.api.url"] = self._address(api_keys)
        return values

    def _address(self, api_keys: Mapping[str, str]) -> str:
        url = f"{self.base_url.rstrip('/')}/{api_keys.get('http.api.path', '').lstrip('/')}"
        parameters = api_keys.get("http.request.parameters", "")
        separator = api_keys.get("http.request.parameters.separator") or "&"
        query = "&".join(part.strip() for part in parameters.split(separator) if part.strip())
        return f"{url}{'&' if '?' in url else '?'}{query}" if query else url

    def problems(self) -> Iterable[Problem]:
        yield from self.access_problems()
        if self.auth.upper() == "API_KEY" and not (self.api_key_name and self.api_key):
            yield Problem("api.key.name", "auth.type=API_KEY needs api.key.name and api.key.value")
        for number in range(1, self.count + 1):
            api_keys = self._keys_of_api(number)
            for name in ("http.api.path", "topics"):
                if not api_keys.get(name):
                    missing = f'Missing required configuration "api{number}.{name}" which has no default value.'
                    yield Problem(f"api{number}.{name}", missing)
            for name in _NOT_DONE:
                if api_keys.get(name):
                    text = "not supported: write ${field} into http.api.path, and bodies with a transformation"
                    yield Problem(f"api{number}.{name}", f"api{number}.{name} is {text}")
            yield from self._problems_of(number, api_keys)

    def _problems_of(self, number: int, api_keys: Mapping[str, str]) -> Iterator[Problem]:
        shared = {declared.name for declared in keys_of(HttpAccess)}
        for declared in validate(HttpSinkConfig, self._as_first(api_keys)):
            if declared.key.name not in shared and not declared.key.name.startswith("https."):
                name = f"api{number}.{_BACK.get(declared.key.name, declared.key.name)}"
                yield from (Problem(name, error.replace(declared.key.name, name)) for error in declared.errors)


def _items(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]

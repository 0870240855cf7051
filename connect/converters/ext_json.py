"""Apicurio's ExtJsonConverter: JSON with the id of its schema in an Apicurio registry, through Apicurio's own API.

Source: the requests and bytes of the class of apicurio-registry-utils-converter 2.6.13, which were recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import orjson
import requests

from connect.api import (
    ConnectError,
    Converted,
    Converter,
    DataError,
    Password,
    Problem,
    RetriableConnectError,
    Schema,
    config,
    family,
    key,
    one_of,
)
from connect.converters.json import JsonConfig, JsonConverter
from connect.data.json_schema import schema_from_json, schema_to_json
from tidegate.kit.config import keys_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ExtJsonConfig", "ExtJsonConverter"]

_PATH: Final = "apis/registry/v2"
_TIMEOUT_S: Final = 30
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})


@config
class ExtJsonConfig(JsonConfig):
    """JsonConverter's keys, and those for the registry."""

    url: str = key(
        "apicurio.registry.url",
        importance="high",
        doc=f"Address of the registry; /{_PATH} is put behind it unless it is there.",
    )
    auto_register: bool = key(
        "apicurio.registry.auto-register",
        default=False,
        doc="Whether schemas that the registry does not have are registered.",
    )
    if_exists: str = key(
        "apicurio.registry.auto-register.if-exists",
        default="RETURN_OR_UPDATE",
        check=one_of("FAIL", "UPDATE", "RETURN", "RETURN_OR_UPDATE"),
        importance="low",
        doc="What registering does where the artifact is there already.",
    )
    find_latest: bool = key(
        "apicurio.registry.find-latest",
        default=False,
        doc="Without auto-register: whether records have the id of the artifact's latest version, whatever their schema is.",
    )
    group: str = key("apicurio.registry.artifact.group-id", default="default", doc="The group of artifacts.")
    user: str = key("apicurio.auth.username", default="", importance="low", doc="The user of basic authentication.")
    password: Password = key("apicurio.auth.password", default="", importance="low", doc="That user's password.")
    own: dict[str, str] = family("apicurio.", doc="Further keys of Apicurio's, which are refused.")

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            yield Problem("apicurio.registry.url", f"{self.url!r} should look like http://host:8080/{_PATH}")
        known = {declared.name for declared in keys_of(ExtJsonConfig)}
        for name in sorted(f"apicurio.{part}" for part in self.own):
            if name not in known:
                yield Problem(name, f"{name} is not supported here: leave it out")


class ExtJsonConverter(Converter):
    """Writes ``{"schemaId":ID,"payload":...}``. Null is a tombstone, on which the original fails."""

    config_class = ExtJsonConfig
    config: ExtJsonConfig

    def __init__(self, config: Any, context: Any) -> None:
        super().__init__(config, context)
        plain = JsonConfig(
            schemas=False, decimal_format=self.config.decimal_format, replace_null=self.config.replace_null
        )
        self._json = JsonConverter(plain, context)
        self._ids: dict[tuple[str, Schema], int] = {}
        self._schemas: dict[int, Schema] = {}

    @cached_property
    def _session(self) -> requests.Session:
        made = requests.Session()
        made.headers.update({"Accept": "application/json", "Content-Type": "application/json"})
        if self.config.user:
            made.auth = (self.config.user, self.config.password.reveal())
        return made

    @cached_property
    def _base(self) -> str:
        url = self.config.url.rstrip("/")
        return url if _PATH in url else f"{url}/{_PATH}"

    def _ask(self, method: str, path: str, body: bytes | None = None, **more: Any) -> Any:
        what = f"{method} {path} of the registry {self.config.url.rpartition('@')[2]}"
        try:
            answer = self._session.request(method, f"{self._base}/{path}", data=body, timeout=_TIMEOUT_S, **more)
        except requests.RequestException as error:
            raise RetriableConnectError(f"{what}: {error}") from error
        if answer.status_code >= 400:
            kind = RetriableConnectError if answer.status_code in _PASSING else ConnectError
            raise kind(f"{what}: {answer.status_code} {answer.text[:200]}")
        try:
            return orjson.loads(answer.content)
        except orjson.JSONDecodeError as error:
            raise ConnectError(f"{what} is answered with what is no JSON: {answer.text[:100]!r}") from error

    # -- writing

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if schema is None:
            raise DataError(
                f"data of {topic} has no schema that a registry could keep; use JsonConverter for such data"
            )
        begin = f'{{"schemaId":{self._id(topic, schema)},"payload":'
        texts = self._json.from_connect(topic, schema, values).cast(pa.string())
        return pc.binary_join_element_wise(begin, texts, "}", "").cast(pa.binary())

    def _id(self, topic: str, schema: Schema) -> int:
        known = self._ids.get((topic, schema))
        if known is not None:
            return known
        if self.context.rehearsals is not None and self.config.auto_register:
            return 0  # nothing may be written
        side = "key" if self.context.is_key else "value"
        artifact = f"{topic}-{side}"
        group = f"groups/{quote(self.config.group, safe='')}/artifacts"
        form = orjson.dumps(schema_to_json(schema))
        if self.config.auto_register:
            query = f"?ifExists={self.config.if_exists}&canonical=false"
            headers = {"X-Registry-ArtifactId": artifact, "X-Registry-ArtifactType": "KCONNECT"}
            schema_id = self._ask("POST", group + query, form, headers=headers)
        elif self.config.find_latest:
            schema_id = self._ask("GET", f"{group}/{quote(artifact, safe='')}/meta")
        else:
            schema_id = self._ask("POST", f"{group}/{quote(artifact, safe='')}/meta?canonical=true", form)
        if not isinstance(schema_id, dict) or not isinstance(schema_id.get("globalId"), int):
            raise ConnectError(f"the registry {self.config.url.rpartition('@')[2]} tells no globalId of {artifact}")
        if len(self._ids) >= self.config.cache_size:
            self._ids.clear()
        made: int = self._ids.setdefault((topic, schema), schema_id["globalId"])
        return made

    # -- reading

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        rows = [_opened(raw, row, topic) for row, raw in enumerate(data.to_pylist())]
        converted, start = [], 0
        last = next((connect_row[0] for connect_row in rows if connect_row is not None), None)
        ids = []
        for connect_row in rows:  # a tombstone belongs to the previous run
            last = last if connect_row is None else connect_row[0]
            ids.append(last)
        for number, members in groupby(ids):
            end = start + len(list(members))
            converted.append(self._run(topic, number, rows[start:end], start))
            start = end
        return converted

    def _run(self, topic: str, number: int | None, rows: Sequence[tuple[int, Any] | None], start: int) -> Converted:
        import pyarrow as pa

        if number is None:
            return Converted(None, pa.nulls(len(rows), pa.string()))
        schema = self._schema(number)
        form = orjson.Fragment(orjson.dumps(schema_to_json(schema)))
        texts = [
            None if connect_row is None else orjson.dumps({"schema": form, "payload": connect_row[1]})
            for connect_row in rows
        ]
        reader = JsonConverter(JsonConfig(replace_null=self.config.replace_null), self.context)
        try:
            made = reader.to_connect(topic, pa.array(texts, pa.binary()))
        except DataError as error:
            raise DataError(str(error), rows=[start + row for row in error.rows]) from error
        return Converted(schema, pa.concat_arrays([connect_row.values for connect_row in made]))

    def _schema(self, number: int) -> Schema:
        if number not in self._schemas:
            if len(self._schemas) >= self.config.cache_size:
                self._schemas.clear()
            self._schemas[number] = schema_from_json(self._ask("GET", f"ids/globalIds/{number}?dereference=false"))
        return self._schemas[number]

    def close(self) -> None:
        if "_session" in self.__dict__:
            self._session.close()


def _opened(raw: bytes | None, row: int, topic: str) -> tuple[int, Any] | None:
    if raw is None:
        return None
    try:
        read = orjson.loads(raw)
        return int(read["schemaId"]), read["payload"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise DataError(f'a record of {topic} should look like {{"schemaId":1,"payload":...}}', rows=[row]) from None

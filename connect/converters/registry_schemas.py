"""Selects the registered schema that records are written with; shared by Confluent's three converters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from connect.api import ConnectError, ConverterContext, DataError, RetriableConnectError, config, key
from connect.converters.suggestions import suggestion
from registry.client import (
    Incompatible,
    NotFound,
    ParsedSchema,
    RegistryClient,
    RegistryClientConfig,
    RegistryClientError,
)
from registry.serde.errors import SerializationError
from registry.serde.subjects import STRATEGIES
from tidegate.kit.config import KeyType
from tidegate.kit.errors import RetriableError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HEADER_SIZE", "RegistryConverterConfig", "RegistrySchemas", "Target", "framed", "runs_of"]

HEADER_SIZE: Final = 5
"""The size of Confluent's framing: a zero byte and four of the schema's id."""


def _strategy(value: str) -> str | None:
    known = ", ".join(STRATEGIES)
    return (
        None if value.rpartition(".")[2] in STRATEGIES else f"String must be one of: {known}, with or without package"
    )


@config
class RegistryConverterConfig(RegistryClientConfig):
    """Keys shared by AvroConverter, JsonSchemaConverter and ProtobufConverter."""

    # The worker's registry is the default of converters without one.
    url: str | None = key(  # type: ignore[assignment]
        "schema.registry.url",
        default=None,
        importance="high",
        doc="Addresses of schema registries, separated by commas; the worker's schema.registry.url unless given.",
    )
    auto_register: bool = key(
        "auto.register.schemas", default=True, doc="Whether schemas that the registry does not have are registered."
    )
    normalize: bool = key(
        "normalize.schemas",
        default=False,
        doc="Whether differences that mean nothing are removed before a schema is registered or looked up.",
    )
    use_latest: bool = key(
        "use.latest.version",
        default=False,
        importance="low",
        doc="Without auto.register.schemas: whether records are written with the subject's latest schema.",
    )
    latest_strict: bool = key(
        "latest.compatibility.strict",
        default=True,
        importance="low",
        doc="Whether that schema must be able to read what the record's own schema would have written.",
    )
    use_id: int = key(
        "use.schema.id",
        default=-1,
        type=KeyType.INT,
        importance="low",
        doc="Without auto.register.schemas: the id of the schema that records are written with, if not negative.",
    )
    id_strict: bool = key(
        "id.compatibility.strict",
        default=True,
        importance="low",
        doc="Whether the schema of that id must be able to read what the record's own schema would have written.",
    )
    key_strategy: str = key(
        "key.subject.name.strategy",
        default="io.confluent.kafka.serializers.subject.TopicNameStrategy",
        check=_strategy,
        doc="Under which subject the schemas of keys are registered.",
    )
    value_strategy: str = key(
        "value.subject.name.strategy",
        default="io.confluent.kafka.serializers.subject.TopicNameStrategy",
        check=_strategy,
        doc="Under which subject the schemas of values are registered.",
    )
    cache_size: int = key(
        "schemas.cache.config",
        default=1000,
        aliases=["schemas.cache.size"],
        importance="low",
        doc="How many schemas are kept for reuse.",
    )


_REASONS: Final = 3
"""How many reasons of an incompatible schema are told; `tidegate schemas check` tells all."""


class Target(NamedTuple):
    """The schema that rows are written with."""

    schema: ParsedSchema
    id: int


class RegistrySchemas:
    """A registry with a converter's options. Use it on the converter's thread."""

    def __init__(self, settings: RegistryConverterConfig, context: ConverterContext, schema_type: str) -> None:
        if settings.url is None:
            side = "key" if context.is_key else "value"
            raise ConnectError(f"no schema registry: set {side}.converter.schema.registry.url, or the worker's")
        self._settings, self._context, self._type = settings, context, schema_type
        client = RegistryClient.configured(settings, settings.url)
        if context.rehearsals is not None:
            from registry.client.rehearsal import RehearsingClient

            client = RehearsingClient.over(client, context.rehearsals)
        self.client = client

    def subject(self, topic: str, name: str | None) -> str:
        """The subject of a topic's schemas; ``name`` is the schema's own.

        Raises DataError if the strategy requires a name.
        """
        side = "key" if self._context.is_key else "value"
        chosen = self._settings.key_strategy if self._context.is_key else self._settings.value_strategy
        strategy = chosen.rpartition(".")[2]
        if strategy == "TopicNameStrategy":
            return f"{topic}-{side}"
        if name is None:
            raise DataError(f"The {side} of topic {topic} must be a named type for {strategy}")
        return name if strategy == "RecordNameStrategy" else f"{topic}-{name}"

    def target(self, topic: str, form: ParsedSchema) -> Target:
        """The schema that records with the form ``form`` are written with, and its id.

        May query the registry each time.
        """
        settings = self._settings
        subject = self.subject(topic, form.name)
        if settings.auto_register:
            try:
                return Target(form, self.client.register(subject, form, normalize=settings.normalize))
            except Incompatible as error:
                raise Incompatible(self._refusal(subject, form) or str(error), error.error_code) from error
        if settings.use_id >= 0:
            schema = self.client.any_schema(settings.use_id)
            return self._checked(Target(schema, settings.use_id), form, settings.id_strict, "id.compatibility.strict")
        if settings.use_latest:
            latest = self.client.version(subject)
            target = Target(self.client.any_parsed(latest), latest.id)
            return self._checked(target, form, settings.latest_strict, "latest.compatibility.strict")
        return Target(form, self.client.id_of(subject, form, normalize=settings.normalize))

    def _refusal(self, subject: str, form: ParsedSchema) -> str:
        """Why the subject does not take a schema, in the words of ``tidegate schemas check``; empty if nobody can say."""
        from registry.explain.comparison import explain
        from registry.formats.compatibility import Level, Previous

        try:
            level = Level(self.client.compatibility(subject))
            versions = self.client.versions(subject)
            compared = versions if level.transitive else versions[-1:]
            previous = [
                Previous(number, self.client.any_parsed(self.client.version(subject, number))) for number in compared
            ]
            told = explain(level, form, previous)
        except (RegistryClientError, ValueError):
            return ""
        if not told:
            return ""
        reasons = "; ".join(
            f"{e.where}: {e.problem} (version {e.against}). To mend it: {e.fix}" for e in told[:_REASONS]
        )
        more = f"; and {len(told) - _REASONS} more" if len(told) > _REASONS else ""
        return (
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", whose level is '
            f"{level.value}: {reasons}{more}"
        )

    def _checked(self, target: Target, form: ParsedSchema, strict: bool, name: str) -> Target:
        if strict and target.schema.schema_type == form.schema_type:
            problems = target.schema.reading_problems(form)
            if problems:
                shown = "; ".join(problem.replace("%s", "schema") for problem in problems[:3])
                raise DataError(
                    f"Incompatible schema: schema {target.id} of the registry cannot read what the record's own would "
                    f"write ({shown}). Set {name}=false to disable this check"
                )
        return target

    @contextmanager
    def translating(self, topic: str, messages: pa.Array | None = None) -> Iterator[None]:
        """Translates the registry's errors into ours; ``messages`` are those that are read."""
        try:
            yield
        except SerializationError as error:
            rows = [] if error.row is None else [error.row]
            message = None if messages is None or error.row is None else messages[error.row].as_py()
            hint = ""
            if message is not None and not _is_framed(message):
                hint = suggestion(message, is_key=self._context.is_key)
            told = f"{self.what(topic)} is not as its {self._type} schema says: {error}{hint}"
            raise DataError(told, rows=rows) from error
        except RetriableError as error:
            raise RetriableConnectError(f"schema registry of {self.what(topic)}: {error}") from error
        except (Incompatible, NotFound) as error:  # as in Kafka Connect, errors.tolerance may skip such records
            raise DataError(f"schema registry refused {self.what(topic)}: {error}") from error
        except RegistryClientError as error:
            raise ConnectError(f"schema registry refused {self.what(topic)}: {error}") from error

    def what(self, topic: str) -> str:
        """The current side and topic, for messages."""
        return f"a {'key' if self._context.is_key else 'value'} of {topic}"

    def close(self) -> None:
        self.client.close()


def framed(bodies: pa.Array, schema_id: int) -> pa.Array:
    """Confluent's framing: a zero byte and the schema's id before each body; nulls stay."""
    import pyarrow as pa
    import pyarrow.compute as pc

    header = pa.scalar(b"\0" + schema_id.to_bytes(4, "big"), pa.binary())
    return pc.binary_join_element_wise(header, bodies.cast(pa.binary()), pa.scalar(b"", pa.binary()))


def _is_framed(message: bytes) -> bool:
    return len(message) >= HEADER_SIZE and message[0] == 0


def runs_of(data: pa.Array, what: str) -> list[tuple[int, int, int | None]]:
    """The start, length and schema id of each run of rows with the same id.

    A null belongs to its surrounding run; the id is None if there are only nulls. Raises DataError for rows without
    this framing.
    """
    ids: list[int | None] = []
    wrong: list[int] = []
    for row, message in enumerate(data.to_pylist()):
        if message is None:
            ids.append(ids[-1] if ids else None)
        elif not _is_framed(message):
            wrong.append(row)
        else:
            ids.append(int.from_bytes(message[1:HEADER_SIZE], "big"))
    if wrong:
        hint = suggestion(data[wrong[0]].as_py(), is_key=what.startswith("a key"))
        raise DataError(f"{what} is not in Confluent's framing: Unknown magic byte!{hint}", rows=wrong)
    first = next((schema_id for schema_id in ids if schema_id is not None), None)
    ids = [first if schema_id is None else schema_id for schema_id in ids]
    edges = [0, *(row for row in range(1, len(ids)) if ids[row] != ids[row - 1]), len(ids)]
    return [(start, stop - start, ids[start]) for start, stop in pairwise(edges) if stop > start]

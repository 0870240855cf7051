"""TimezoneConverter: converts the times in change events to another time zone."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.api import DataError, Field, Problem, RecordBatch, Schema, SchemaType, Transformation, config, key
from connect.data.schema import DATE, TIME, TIMESTAMP
from connect.data.structs import struct_of
from connect.transforms.debezium.fields import is_envelope
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TimezoneConverter", "TimezoneConverterConfig"]

logger = get_logger(__name__)

_OFFSET: Final = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_RULES: Final = re.compile(r"\[[\".\w\s]+:(?:[\".\w\s]+(?::[\".\w\s]+)?(?:,|\]$))+", re.ASCII)
"""Debezium's: only the first rule may have a word, a name and a field."""
_FORM: Final = 'of rules "source:table:field", "topic:name:field" or "name:field"'
_UNSUPPORTED: Final = frozenset(
    {*(f"io.debezium.time.{name}" for name in ("Date", "MicroTime", "NanoTime", "Time")), DATE, TIME}
)
_PER_SECOND: Final = {
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
    TIMESTAMP: 1_000,
}
_TEXTS: Final = frozenset({"io.debezium.time.ZonedTimestamp", "io.debezium.time.ZonedTime"})
_EPOCH_FIELDS: Final = {"ts_ms": 1_000, "ts_us": 1_000_000, "ts_ns": 1_000_000_000}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PARTS: Final = ("before", "after", "source")


@config
class TimezoneConverterConfig:
    """Keys of TimezoneConverter."""

    zone: str = key(
        "converted.timezone",
        importance="high",
        doc="The time zone: a name (America/Los_Angeles) or a distance from UTC (+08:00).",
    )
    included: list[str] = key(
        "include.list",
        default=(),
        importance="high",
        doc="What is converted: source:TABLE, source:TABLE:FIELD, topic:TOPIC, topic:TOPIC:FIELD or NAME:FIELD, where NAME is "
        "a topic or a table. FIELD may begin with before., after. or source.",
    )
    excluded: list[str] = key(
        "exclude.list", default=(), importance="high", doc="What is not converted, in the same forms."
    )

    def problems(self) -> Iterable[Problem]:
        for name, rules in (("include.list", self.included), ("exclude.list", self.excluded)):
            if rules and not _RULES.fullmatch(f"[{', '.join(rules)}]"):
                yield Problem(name, f"Invalid {name}: it should be a list {_FORM}")
        if self.included and self.excluded:
            yield Problem("exclude.list", "Both include and exclude lists are specified. Please specify only one.")
        try:
            _zone(self.zone)
        except ValueError as error:
            yield Problem("converted.timezone", str(error))


def _zone(name: str) -> dt.tzinfo:
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes, seconds = match.groups()
        distance = dt.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds or 0))
        if distance <= dt.timedelta(hours=18) and int(minutes) < 60 and int(seconds or 0) < 60:
            return dt.timezone(-distance if sign == "-" else distance)
    else:
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise ValueError(
        f"Invalid timezone {name!r}: it should be a name such as America/Los_Angeles or a distance from UTC such as +08:00"
    )


class _Choice(NamedTuple):
    """The selected fields of a change event: those named, all but those named, or all."""

    fields: frozenset[str]
    excludes: bool = False

    def covers(self, part: str, field: str) -> bool:
        """Whether a field of ``before``, ``after`` or ``source`` is converted; those of ``source`` only if named."""
        named = set()
        for name in self.fields:
            of, dot, rest = name.partition(".")
            if dot and of in _PARTS:
                named |= {rest} if of == part else set()
            elif part != "source":
                named.add(name)
        if part == "source" and not named:
            return False
        return field not in named if self.excludes else not self.fields or field in named


class TimezoneConverter(Transformation):
    """Texts with a zone get another one for the same moment.

    Numbers have no zone: as in Debezium, which interprets the number as local time, they are shifted by the zone's
    offset from UTC.
    """

    config_class = TimezoneConverterConfig
    config: TimezoneConverterConfig
    traces_fields = True

    @cached_property
    def _tz(self) -> dt.tzinfo:
        return _zone(self.config.zone)

    @cached_property
    def _rules(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """Fields by name, for topics, tables (``source``) and either (empty)."""
        made: dict[str, dict[str, set[str]]] = {"topic": {}, "source": {}, "": {}}
        kind = ""
        for rule in self.config.excluded or self.config.included:
            parts = rule.split(":")
            if len(parts) > 1 and parts[0].lower() in ("source", "topic"):
                # A rule without such a word uses the previous one, as in Debezium.
                kind, *parts = parts
            named = made[kind if kind in made else ""].setdefault(parts[0], set())
            named.update(parts[1:2])
        return {kind: {name: frozenset(fields) for name, fields in names.items()} for kind, names in made.items()}

    def _choice(self, table: str | None, topic: str) -> _Choice | None:
        """The converted fields for events of a table; None if there are none."""
        named = (("topic", topic), ("source", table or ""), ("", topic), ("", table or ""))
        zone = next((self._rules[kind][name] for kind, name in named if name in self._rules[kind]), None)
        if self.config.included:
            return None if zone is None else _Choice(zone)
        if zone is None:
            return _Choice(frozenset())
        return _Choice(zone, excludes=True) if zone else None

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        schema = batch.value_schema
        if schema is None or not is_envelope(schema) or batch.values.null_count == len(batch):
            return [batch]
        tables = self._tables(schema, batch.values)
        choices = {table: self._choice(table, batch.topic) for table in set(tables)}
        if all(choice is None for choice in choices.values()):
            return [batch]
        columns = [batch.values.field(index) for index in range(len(schema.fields))]
        for index, member in enumerate(schema.fields):
            if member.name in _PARTS and member.schema.type is SchemaType.STRUCT:
                columns[index] = self._converted(member, columns[index], [choices[table] for table in tables])
        return [batch.replace(values=struct_of(schema, columns, batch.values))]

    @staticmethod
    def _tables(schema: Schema, values: pa.Array) -> list[str | None]:
        if "source" not in schema.field_names:
            return [None] * len(values)
        source = schema.field("source").schema
        if source.type is not SchemaType.STRUCT or "table" not in source.field_names:
            return [None] * len(values)
        column = values.field(schema.field_names.index("source"))
        return column.field(source.field_names.index("table")).to_pylist()  # type: ignore[no-any-return]

    def _converted(self, part: Field, column: pa.Array, choices: Sequence[_Choice | None]) -> pa.Array:
        import pyarrow as pa

        made, changed = [], False
        there = column.is_valid().to_pylist()  # under a null struct values are arbitrary
        for index, member in enumerate(part.schema.fields):
            values = column.field(index)
            made.append(values)
            convert = self._conversion(part.name, member)
            if convert is None:
                continue
            rows = [
                valid and choice is not None and choice.covers(part.name, member.name)
                for valid, choice in zip(there, choices, strict=True)
            ]
            if not any(rows):
                continue
            if member.schema.name in _UNSUPPORTED:
                self._tell(member)
                continue
            numbers = values.cast(pa.int64()) if member.schema.type is SchemaType.INT64 else values
            cells = [
                convert(value) if chosen and value is not None else value
                for chosen, value in zip(rows, numbers.to_pylist(), strict=True)
            ]
            made[-1], changed = pa.array(cells, numbers.type).cast(values.type), True
        return struct_of(part.schema, made, column) if changed else column

    def _tell(self, member: Field) -> None:
        if member.name not in self._warned:
            self._warned.add(member.name)
            logger.warning("a time that has no zone is not converted", field=member.name, type=member.schema.name)

    @cached_property
    def _warned(self) -> set[str]:
        return set()

    def _conversion(self, part: str, member: Field) -> Callable[[Any], Any] | None:
        name, kind = member.schema.name, member.schema.type
        if name in _UNSUPPORTED:
            return lambda value: value
        if name in _PER_SECOND and kind is SchemaType.INT64:
            per_second = _PER_SECOND[name or ""]
            return lambda value: self._local(value, per_second)
        if name in _TEXTS and kind is SchemaType.STRING:
            return self._timestamp if name == "io.debezium.time.ZonedTimestamp" else self._time
        if name is None and part == "source" and member.name in _EPOCH_FIELDS and kind is SchemaType.INT64:
            per_second = _EPOCH_FIELDS[member.name]
            return lambda value: self._moved(value, per_second)
        return None

    def _local(self, count: int, per_second: int) -> int:
        """The moment at which the zone's clocks showed the UTC time of the number."""
        local = _datetime(count // per_second)
        offset = local.replace(tzinfo=self._tz).utcoffset() or dt.timedelta()
        return count - int(offset.total_seconds()) * per_second

    def _moved(self, count: int, per_second: int) -> int:
        moment = _datetime(count // per_second).astimezone(self._tz)
        return count + int((moment.utcoffset() or dt.timedelta()).total_seconds()) * per_second

    def _timestamp(self, text: str) -> str:
        moment, fraction = _parsed(text)
        # As in Debezium: the offset from UTC is that of the clock time, in whatever zone it was.
        offset = moment.replace(tzinfo=self._tz).utcoffset() or dt.timedelta()
        there = moment.astimezone(dt.timezone(offset))
        return there.strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + fraction + _shown_offset(offset)

    def _time(self, text: str) -> str:
        moment, fraction = _parsed(f"1970-01-02T{text}")
        offset = dt.datetime.now(self._tz).utcoffset() or dt.timedelta()
        return moment.astimezone(dt.timezone(offset)).strftime("%H:%M:%S") + fraction + _shown_offset(offset)


def _datetime(seconds: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        raise DataError(f"the time {seconds} s from 1970 is beyond the years 1 to 9999") from None


_ISO: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:\d{2}(?::\d{2})?)", re.ASCII
)


def _parsed(text: str) -> tuple[dt.datetime, str]:
    """A moment to the second, and its fraction as written: ``.5``, or nothing."""
    match = _ISO.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        day, seconds, fraction, zone = match.groups()
        moment = dt.datetime.fromisoformat(f"{day}:{seconds or '00'}{'+00:00' if zone == 'Z' else zone}")
    except ValueError:
        raise DataError(f"{text[:100]!r} is no ISO 8601 time with a zone") from None
    digits = (fraction or "").rstrip("0")
    return moment, f".{digits}" if digits else ""


def _shown_offset(offset: dt.timedelta) -> str:
    seconds = int(offset.total_seconds())
    if not seconds:
        return "Z"
    sign, seconds = "-" if seconds < 0 else "+", abs(seconds)
    shown = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return shown + (f":{seconds % 60:02d}" if seconds % 60 else "")

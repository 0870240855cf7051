"""Keys of the file source: SpoolDir's, and those of what SpoolDir has not."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from connect.api import (
    Check,
    ConnectError,
    KeyType,
    Password,
    Problem,
    Schema,
    all_of,
    at_least,
    config,
    inherited,
    key,
    non_empty,
    one_of,
    time_zone,
    valid_regex,
)
from connectors.folders.schemas import read_schema
from connectors.folders.texts import TimeFormats, java_format
from connectors.objects.azure import AzureKeys, azure_problems
from connectors.objects.gcs import GcsKeys, gcs_problems
from connectors.objects.sftp import SftpKeys, url_problems

__all__ = [
    "FORMATS",
    "AvroConfig",
    "BinaryConfig",
    "CsvConfig",
    "FolderSourceConfig",
    "JsonConfig",
    "LinesConfig",
    "SchemalessJsonConfig",
    "scheme_of",
]

FORMATS: Final = {
    "avro": "whole:AvroRows",
    "binary": "whole:WholeFile",
    "csv": "delimited:Delimited",
    "fixed": "lines:FixedWidth",
    "json": "lines:JsonLines",
    "lines": "lines:Lines",
    "parquet": "whole:ParquetRows",
    "regex": "lines:Pattern",
    "xml": "xml:XmlRows",
}
"""Where each format is defined, by its name in ``input.format``, below ``connectors.folders.formats``."""

_FILES: Final = "File System"
_SCHEMA: Final = "Schema"
_CSV: Final = "CSV"
_STORE: Final = "Store"
_SORTS: Final = ("NameAsc", "NameDesc", "LengthAsc", "LengthDesc", "LastModifiedAsc", "LastModifiedDesc")
_UNUSED: Final = "Accepted for compatibility."


def _character(value: str) -> str | None:
    """The problem with a character, given as itself or as its number."""
    if _read_character(value) is None and value != "0":
        return "should be a character, or its number: 44 is a comma, 9 a tab"
    return None


def _read_character(value: str) -> str | None:
    if value.isdigit():
        return chr(int(value)) if 0 < int(value) < 128 else None
    return value if len(value) == 1 else None


def _charset(value: str) -> str | None:
    try:
        codecs.lookup(value)
    except LookupError:
        return "is no character set that Python knows"
    return None


def _sorts(value: list[str]) -> str | None:
    known = {each.lower() for each in _SORTS}
    wrong = next((each for each in value if each.lower() not in known), None)
    return None if wrong is None else f"{wrong!r} should be one of {', '.join(_SORTS)}"


def _schema_text(value: str) -> str | None:
    try:
        read_schema(value)
    except ConnectError as error:
        return str(error)
    return None


_CHARACTER: Final[Check] = _character
_JAVA_GROUP: Final = re.compile(r"\(\?<(?![=!])")


@config
class FolderSourceConfig(SftpKeys, AzureKeys, GcsKeys):
    """Which files are read, what they contain, and what becomes of them."""

    topic: str = key("topic", doc="The topic for the rows.", importance="high", check=non_empty)
    input_path: str = key(
        "input.path",
        doc="The folder with the files: a path of this disk, or s3://bucket/folder, gs://bucket/folder, az://container/folder, "
        "hdfs://host:8020/folder or sftp://user@host:22/folder.",
        importance="high",
        check=non_empty,
        group=_FILES,
    )
    pattern: str = key(
        "input.file.pattern",
        doc="A regular expression that the whole name of a file must match, without its folders.",
        importance="high",
        check=all_of(non_empty, valid_regex),
        group=_FILES,
    )
    input_format: str = key(
        "input.format",
        default="csv",
        check=one_of(*FORMATS, ignore_case=True),
        doc="What files contain: csv (delimited text), json (a JSON value in each line), lines, regex (lines with named groups), fixed "
        "(lines of fixed width), xml (an element is a record), parquet, avro or binary (a file is one record). Text is unpacked where a name ends with .gz, .bz2 "
        "or .zst.",
        importance="high",
    )
    walks: bool = key(
        "input.path.walk.recursively", default=False, doc="Whether folders below are read too.", group=_FILES
    )
    finished_path: str = key(
        "finished.path",
        default="",
        doc="Where files go that were read, with cleanup.policy MOVE and MOVEBYDATE. It must exist, and be in the same store.",
        importance="high",
        group=_FILES,
    )
    error_path: str = key(
        "error.path",
        default="",
        doc="Where files go that cannot be read to their end, with halt.on.error=false; without it they stay, and are passed over.",
        importance="high",
        group=_FILES,
    )
    cleanup: str = key(
        "cleanup.policy",
        default="NONE",
        check=one_of("NONE", "DELETE", "MOVE", "MOVEBYDATE", ignore_case=True),
        doc="What becomes of a file once its last record is written to the log and the position is committed: NONE keeps it, DELETE "
        "deletes it, MOVE moves it to finished.path, MOVEBYDATE to a folder there with the date.",
        group=_FILES,
    )
    keeps_folders: bool = key(
        "cleanup.policy.maintain.relative.path",
        default=False,
        doc="Whether folders below input.path stay when their last file has gone; moved files keep them either way.",
        group=_FILES,
    )
    halts: bool = key(
        "halt.on.error",
        default=True,
        doc="Whether a file that cannot be read fails the task. With false it is moved to error.path, and the next file is read. Rows "
        "that cannot be read are left out with errors.tolerance=all.",
        importance="high",
        group=_FILES,
    )
    dead_letters: str = key(
        "errors.deadletterqueue.topic.name",
        default="",
        doc="With errors.tolerance=all, the topic for rows that cannot be read: structs of file, line, error and text.",
        group="Error Handling",
    )
    minimum_age_ms: int = key(
        "file.minimum.age.ms",
        default=1000,
        check=at_least(0),
        doc="Files that were written to less than this many milliseconds ago are left alone: they may be half written.",
        group=_FILES,
    )
    sorts: list[str] = key(
        "files.sort.attributes",
        default=["NameAsc"],
        check=_sorts,
        doc="In which order files are read: NameAsc, NameDesc, LengthAsc, LengthDesc, LastModifiedAsc, LastModifiedDesc.",
        group=_FILES,
    )
    ascending: bool = key(
        "files.names.ascend",
        default=False,
        doc="Whether each new file has a name that sorts behind all earlier ones. One position is kept for all files then, and only "
        "names behind it are listed, so that a million read files cost nothing. Files stay then, and one task reads them.",
        group=_FILES,
    )
    wait_ms: int = key(
        "empty.poll.wait.ms",
        default=500,
        check=at_least(1),
        doc="How long to wait before the folder is listed again, in milliseconds.",
        importance="low",
    )
    batch_rows: int = key(
        "batch.size",
        default=10_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The most records in one batch.",
        importance="low",
    )
    headers: bool = key(
        "file.headers",
        default=False,
        doc="Whether records get headers with their file: file.name, file.path, file.length, file.offset (the number of the row) and "
        "file.last.modified, as strings.",
        importance="low",
    )
    charset: str = key(
        "file.charset",
        default="UTF-8",
        check=_charset,
        doc="The character set of text.",
        importance="low",
        group=_FILES,
    )
    value_schema: str | None = key(
        "value.schema",
        default=None,
        check=_schema_text,
        doc="The schema of rows as JSON: Avro's, JsonConverter's, or SpoolDir's (fieldSchemas). Columns that it does not name are "
        "left out.",
        importance="high",
        group=_SCHEMA,
    )
    key_schema: str | None = key(
        "key.schema",
        default=None,
        check=_schema_text,
        doc="The schema of keys as JSON: its fields are those of the row with these names.",
        importance="high",
        group=_SCHEMA,
    )
    generates: bool = key(
        "schema.generation.enabled",
        default=True,
        doc="Whether a schema is made from the first file where value.schema is not given.",
        group=_SCHEMA,
    )
    generated_types: str = key(
        "schema.generation.types",
        default="inferred",
        check=one_of("inferred", "strings", ignore_case=True),
        doc="The types of a schema that is made: inferred from the first rows, once and for good, or strings.",
        group=_SCHEMA,
    )
    key_fields: list[str] = key(
        "schema.generation.key.fields",
        default=[],
        doc="The fields of which keys are made, where key.schema is not given.",
        group=_SCHEMA,
    )
    key_name: str = key(
        "schema.generation.key.name",
        default="com.github.jcustenborder.kafka.connect.model.Key",
        doc="The name of a key schema that is made.",
        group=_SCHEMA,
    )
    value_name: str = key(
        "schema.generation.value.name",
        default="com.github.jcustenborder.kafka.connect.model.Value",
        doc="The name of a value schema that is made.",
        group=_SCHEMA,
    )
    json_schemaless: bool = key(
        "json.schemaless",
        default=False,
        doc="With json and xml, whether values have no schema: any JSON, as it is.",
        group=_SCHEMA,
    )
    date_formats: list[str] = key(
        "parser.timestamp.date.formats",
        default=["yyyy-MM-dd'T'HH:mm:ss", "yyyy-MM-dd' 'HH:mm:ss"],
        doc="How timestamps are written, as Java's SimpleDateFormat says it; ISO 8601 is read beside them.",
        importance="low",
        group="Timestamps",
    )
    zone: str = key(
        "parser.timestamp.timezone",
        default="UTC",
        check=time_zone(),
        doc="The time zone of timestamps that have none.",
        importance="low",
        group="Timestamps",
    )
    timestamp_mode: str = key(
        "timestamp.mode",
        default="PROCESS_TIME",
        check=one_of("PROCESS_TIME", "FILE_TIME", "FIELD", ignore_case=True),
        doc="The timestamp of records: when they were read, when the file was last written to, or timestamp.field.",
        group="Timestamps",
    )
    timestamp_field: str = key(
        "timestamp.field",
        default="",
        doc="The field with the timestamp, a Timestamp that is not optional.",
        group="Timestamps",
    )
    line_regex: str = key(
        "line.regex",
        default="",
        doc="With regex, the pattern with a named group for each field, in RE2's syntax, such as (?P<level>\\w+) (?P<text>.*).",
        group="Lines",
    )
    fixed_fields: list[str] = key(
        "fixed.fields",
        default=[],
        doc="With fixed, the names of fields and their widths in characters, as id:8,name:30; other lines are wrong if they are longer.",
        group="Lines",
    )
    xml_element: str = key(
        "xml.record.element",
        default="",
        doc="With xml, the name of the elements that are records, without namespace, at any depth; by default those below the root. "
        "Attributes and elements are fields, repeated ones lists; text beside them is the field value.",
        group="XML",
    )
    skip_lines: int = key(
        "csv.skip.lines",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        doc="How many lines at the beginning of a text file are passed over.",
        importance="low",
        group=_CSV,
    )
    first_row_is_header: bool = key(
        "csv.first.row.as.header",
        default=True,
        doc="Whether the first row has the names of columns; otherwise they are the schema's in its order, or column01, column02...",
        group=_CSV,
    )
    case_sensitive: bool = key(
        "csv.case.sensitive.field.names",
        default=False,
        doc="Whether names in the header have to agree with the schema's in case.",
        importance="low",
        group=_CSV,
    )
    separator_char: str = key(
        "csv.separator.char",
        default="44",
        check=_CHARACTER,
        doc="The character between cells, as itself or as its number: 44 is a comma, 9 a tab.",
        importance="low",
        group=_CSV,
    )
    quote_char: str = key(
        "csv.quote.char",
        default="34",
        check=_CHARACTER,
        doc="The character around cells; 0 for none.",
        importance="low",
        group=_CSV,
    )
    escape_char: str = key(
        "csv.escape.char",
        default="0",
        check=_CHARACTER,
        doc="The character before one that is to be taken as it is; 0 for none. A quote within quotes may be doubled either way.",
        importance="low",
        group=_CSV,
    )
    ignore_quotes: bool = key(
        "csv.ignore.quotations",
        default=False,
        doc="Whether quotes are characters like others.",
        importance="low",
        group=_CSV,
    )
    ignore_leading_whitespace: bool = key(
        "csv.ignore.leading.whitespace",
        default=False,
        doc="Whether spaces at the beginning of cells are removed.",
        importance="low",
        group=_CSV,
    )
    null_field_indicator: str = key(
        "csv.null.field.indicator",
        default="EMPTY_SEPARATORS",
        check=one_of("NEITHER", "EMPTY_SEPARATORS", "EMPTY_QUOTES", "BOTH", ignore_case=True),
        doc="Which empty cells are null in fields of strings: those without quotes (EMPTY_SEPARATORS), those with (EMPTY_QUOTES), BOTH or "
        "NEITHER. In fields of other types all are.",
        importance="low",
        group=_CSV,
    )
    region: str = key("s3.region", default="us-east-1", doc="The region of an S3 bucket.", group=_STORE)
    endpoint: str = key(
        "store.url",
        default="",
        doc="The address of an object store that is not the provider's; for Azure with the account, such as "
        "http://127.0.0.1:10000/devstoreaccount1.",
        group=_STORE,
    )
    access_key: str = key(
        "aws.access.key.id",
        default="",
        doc="The access key of S3. Without it, it comes from the environment as for Amazon's own tools.",
        group=_STORE,
    )
    secret_key: Password = key("aws.secret.access.key", default=Password(""), doc="The secret key of S3.", group=_STORE)
    task_count: int = key(
        "task.count",
        default=1,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many tasks share the files; the connector sets it.",
        importance="low",
    )
    task_index: int = key(
        "task.index", default=0, type=KeyType.INT, doc=f"{_UNUSED} The worker numbers tasks.", importance="low"
    )
    task_partitioner: str = key(
        "task.partitioner", default="ByName", doc=f"{_UNUSED} Tasks share files by name.", importance="low"
    )
    processing_extension: str = key(
        "processing.file.extension",
        default=".PROCESSING",
        doc=f"{_UNUSED} No file marks the one that is read; names that end so are passed over.",
        importance="low",
        group=_FILES,
    )
    buffer_bytes: int = key("file.buffer.size.bytes", default=131_072, doc=_UNUSED, importance="low", group=_FILES)
    strict_quotes: bool = key(
        "csv.strict.quotes", default=False, doc=f"{_UNUSED} Only false.", importance="low", group=_CSV
    )
    keep_return: bool = key(
        "csv.keep.carriage.return", default=False, doc=f"{_UNUSED} Only false.", importance="low", group=_CSV
    )
    verify_reader: bool = key("csv.verify.reader", default=True, doc=_UNUSED, importance="low", group=_CSV)

    @property
    def times(self) -> TimeFormats:
        return TimeFormats([java_format(each) for each in self.date_formats], self.zone)

    @property
    def separator(self) -> str:
        return _read_character(self.separator_char) or ","

    @property
    def quote(self) -> str | None:
        return None if self.ignore_quotes else _read_character(self.quote_char)

    @property
    def escape(self) -> str | None:
        return _read_character(self.escape_char)

    @property
    def null_indicator(self) -> str:
        return self.null_field_indicator.upper()

    @property
    def infers_types(self) -> bool:
        return self.generated_types.lower() == "inferred"

    @property
    def typed(self) -> bool:
        """With json and xml: whether values have a schema."""
        return not self.json_schemaless

    @property
    def makes_schema(self) -> bool:
        """Whether the first rows decide the schema."""
        kind = self.input_format.lower()
        return (
            self.value_schema is None
            and kind in ("csv", "regex", "fixed", "json", "xml")
            and not (kind in ("json", "xml") and not self.typed)
        )

    @property
    def fixed_widths(self) -> list[tuple[str, int]]:
        pairs = (each.rpartition(":") for each in self.fixed_fields)
        return [(name.strip(), int(width)) for name, _, width in pairs]

    @property
    def line_pattern(self) -> str:
        """The pattern with named groups as RE2 writes them; Java's ``(?<name>`` is read too."""
        return _JAVA_GROUP.sub("(?P<", self.line_regex)

    @property
    def value(self) -> Schema | None:
        return None if self.value_schema is None else read_schema(self.value_schema)

    @property
    def changes_input(self) -> bool:
        return self.cleanup.upper() != "NONE" or bool(self.error_path)

    def problems(self) -> Iterable[Problem]:
        kind = self.input_format.lower()
        if self.cleanup.upper().startswith("MOVE") and not self.finished_path:
            yield Problem(
                "finished.path", f"cleanup.policy={self.cleanup} needs finished.path, where files go that were read"
            )
        for name, folder_url in (("finished.path", self.finished_path), ("error.path", self.error_path)):
            if folder_url and _kind(folder_url) != _kind(self.input_path):
                yield Problem(
                    name, f"{name} is {folder_url!r}; it should be in the same store as input.path, {self.input_path!r}"
                )
        yield from url_problems("input.path", self.input_path)
        yield from url_problems("finished.path", self.finished_path)
        yield from url_problems("error.path", self.error_path)
        if scheme_of(self.input_path) == "az":
            yield from azure_problems(self, self.endpoint, "store.url")
        if scheme_of(self.input_path) == "gs":
            yield from gcs_problems(self, self.endpoint, "store.url")
        if kind == "regex":
            yield from self._regex_problems()
        if kind == "fixed":
            yield from self._width_problems()
        if self.makes_schema and not self.generates:
            yield Problem("value.schema", "give value.schema, or schema.generation.enabled=true")
        yield from self._key_problems()
        if self.timestamp_mode.upper() == "FIELD" and not self.timestamp_field:
            yield Problem("timestamp.field", "timestamp.mode=FIELD needs timestamp.field")
        if self.strict_quotes:
            yield Problem("csv.strict.quotes", "csv.strict.quotes=true is not supported")
        if self.keep_return:
            yield Problem("csv.keep.carriage.return", "csv.keep.carriage.return=true is not supported")
        if self.ascending and [each.lower() for each in self.sorts] != ["nameasc"]:
            yield Problem("files.names.ascend", "files.names.ascend=true needs files.sort.attributes=NameAsc")
        if self.ascending and (self.cleanup.upper() != "NONE" or self.error_path):
            yield Problem(
                "files.names.ascend", "files.names.ascend=true needs cleanup.policy=NONE and no error.path: files stay"
            )
        for pattern in self.date_formats:
            try:
                java_format(pattern)
            except ConnectError as error:
                yield Problem("parser.timestamp.date.formats", str(error))

    def _key_problems(self) -> Iterable[Problem]:
        """Those of keys that no file can change: a schema that is made of the first file is not known yet."""
        kind = self.input_format.lower()
        if self.key_schema is None:
            name, fields = "schema.generation.key.fields", tuple(self.key_fields)
        else:
            name, fields = "key.schema", read_schema(self.key_schema).field_names
        if not fields:
            return
        if kind in ("lines", "binary") or (kind in ("json", "xml") and not self.typed):
            without_schema = " with json.schemaless=true" if kind in ("json", "xml") else ""
            yield Problem(
                name, f"values of input.format={kind}{without_schema} have no fields to make keys of: leave {name} out"
            )
            return
        value = None if kind in ("parquet", "avro") else self.value
        known = fields if value is None else value.field_names
        if missing := [each for each in fields if each not in known]:
            yield Problem(name, f"{name} has {', '.join(missing)}; the fields of value.schema are {', '.join(known)}")

    def _regex_problems(self) -> Iterable[Problem]:
        import re2

        try:
            groups = re2.compile(self.line_pattern).groupindex
        except re2.error as error:
            yield Problem("line.regex", f"line.regex is {self.line_regex!r}: {error}")
            return
        if not groups:
            yield Problem(
                "line.regex",
                "input.format=regex needs line.regex with named groups, such as (?P<level>\\w+) (?P<text>.*)",
            )

    def _width_problems(self) -> Iterable[Problem]:
        if not self.fixed_fields:
            yield Problem("fixed.fields", "input.format=fixed needs fixed.fields, such as id:8,name:30")
        for each in self.fixed_fields:
            name, _, width = each.rpartition(":")
            if not name.strip() or not width.strip().isdigit() or not int(width):
                yield Problem("fixed.fields", f"{each!r} should be name:width, such as id:8")


def scheme_of(path: str) -> str:
    """The scheme of a URI in lower case, empty for a path of this disk."""
    return urlsplit(path).scheme.lower() if "://" in path or path.startswith("file:") else ""


def _kind(path: str) -> str:
    scheme = scheme_of(path)
    return "" if scheme == "file" else scheme


@config
class _SpoolDirConfig(FolderSourceConfig):
    """SpoolDir's defaults."""

    cleanup: str = inherited(default="MOVE")
    minimum_age_ms: int = inherited(default=0)
    batch_rows: int = inherited(default=1000)
    headers: bool = inherited(default=True)
    generates: bool = inherited(default=False)
    generated_types: str = inherited(default="strings")


@config
class CsvConfig(_SpoolDirConfig):
    """SpoolDirCsvSourceConnector."""

    charset: str = key(
        "csv.file.charset",
        default="UTF-8",
        check=_charset,
        doc="The character set of text.",
        importance="low",
        group=_CSV,
    )
    first_row_is_header: bool = inherited(default=False)
    escape_char: str = inherited(default="92")
    null_field_indicator: str = inherited(default="NEITHER")


@config
class JsonConfig(_SpoolDirConfig):
    """SpoolDirJsonSourceConnector."""

    input_format: str = inherited(default="json")


@config
class SchemalessJsonConfig(_SpoolDirConfig):
    """SpoolDirSchemaLessJsonSourceConnector."""

    input_format: str = inherited(default="json")
    json_schemaless: bool = inherited(default=True)


@config
class LinesConfig(_SpoolDirConfig):
    """SpoolDirLineDelimitedSourceConnector."""

    input_format: str = inherited(default="lines")


@config
class AvroConfig(_SpoolDirConfig):
    """SpoolDirAvroSourceConnector."""

    input_format: str = inherited(default="avro")


@config
class BinaryConfig(_SpoolDirConfig):
    """SpoolDirBinaryFileSourceConnector."""

    input_format: str = inherited(default="binary")

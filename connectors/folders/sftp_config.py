"""Keys of Confluent's SFTP sources, and what they come to in the keys of the file source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connect.api import all_of, config, key, non_empty, one_of
from connectors.folders.config import BinaryConfig, CsvConfig, JsonConfig, SchemalessJsonConfig
from connectors.objects.sftp import SftpServerKeys

__all__ = ["SftpBinaryConfig", "SftpCsvConfig", "SftpGenericConfig", "SftpJsonConfig", "SftpSchemalessJsonConfig"]

_FILES: Final = "File System"
_PATH: Final = "a whole path on the server, or one that begins with ~ for the user's folder"


def _on_server(value: str) -> str | None:
    return (
        None if not value or value.startswith(("/", "~")) else "should be a whole path on the server, or begin with ~"
    )


@config
class _OnServer(SftpServerKeys):
    """Confluent's words for the server, the topic, folders and errors."""

    topic: str = key("kafka.topic", doc="The topic for the rows.", importance="high", check=non_empty)
    input_path: str = key(
        "input.path",
        doc=f"The folder with the files: {_PATH}.",
        importance="high",
        check=all_of(non_empty, _on_server),
        group=_FILES,
    )
    finished_path: str = key(
        "finished.path",
        default="",
        check=_on_server,
        doc="Where files go that were read, with cleanup.policy MOVE and MOVEBYDATE: a folder of the server that exists.",
        importance="high",
        group=_FILES,
    )
    error_path: str = key(
        "error.path",
        default="",
        check=_on_server,
        doc="Where files go that cannot be read to their end, with behavior.on.error LOG and IGNORE; without it they stay, and are "
        "passed over.",
        importance="high",
        group=_FILES,
    )
    behavior: str = key(
        "behavior.on.error",
        default="FAIL",
        check=one_of("FAIL", "LOG", "IGNORE", ignore_case=True),
        doc="What to do with a file that cannot be read: fail the task, or move it to error.path and read the next (LOG and IGNORE).",
        importance="high",
        group=_FILES,
    )

    @property
    def platform_keys(self) -> Mapping[str, str]:
        """The same settings as keys of the file source."""
        paths = {"input.path": self.input_path, "finished.path": self.finished_path, "error.path": self.error_path}
        urls = {name: self.url_of(path) for name, path in paths.items() if path}
        fails = self.behavior.upper() == "FAIL"
        return {"topic": self.topic, "halt.on.error": str(fails).lower(), **urls}


@config
class SftpCsvConfig(_OnServer, CsvConfig):
    """SftpCsvSourceConnector."""


@config
class SftpJsonConfig(_OnServer, JsonConfig):
    """SftpJsonSourceConnector."""


@config
class SftpSchemalessJsonConfig(_OnServer, SchemalessJsonConfig):
    """SftpSchemaLessJsonSourceConnector."""


@config
class SftpBinaryConfig(_OnServer, BinaryConfig):
    """SftpBinaryFileSourceConnector."""


@config
class SftpGenericConfig(_OnServer, JsonConfig):
    """SftpGenericSourceConnector, whose files are of any of these formats."""

    parser: str = key(
        "input.file.parser.format",
        default="JSON",
        check=one_of("BINARY", "CSV", "JSON", "SCHEMALESS_JSON", ignore_case=True),
        doc="What files contain.",
        importance="high",
        group="File System",
    )

    @property
    def platform_keys(self) -> Mapping[str, str]:
        schemaless = self.parser.upper() == "SCHEMALESS_JSON"
        kind = "json" if schemaless else self.parser.lower()
        return {**super().platform_keys, "input.format": kind, "json.schemaless": str(schemaless).lower()}

    @property
    def makes_schema(self) -> bool:
        return self.value_schema is None and self.parser.upper() in ("CSV", "JSON")

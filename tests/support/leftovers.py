"""Checks the logs that tests' brokers leave on disk with Apache Kafka's dump tool.

Code that ends a broker calls ``left`` with its data directory; ``tests/conftest.py`` has all of them checked at the end
of the tests.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from broker.log.checkpoints import CLEAN_SHUTDOWN, read_offsets
from broker.protocol.records import BatchHeader
from tests.servers.kafka import kafka_tool

__all__ = ["complaints", "left", "left_by_hostile_clients", "logs_left"]

_SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
_FILES_AT_ONCE: Final = 1500
"""The most bytes for one command line: an argument has at most 128 KiB."""
_SAID_OF_GOOD: Final = re.compile(
    r"|Dumping .*|Log starting offset: \d+|Snapshot end offset: .*"
    r"|baseOffset: .* isvalid: true|\| .*|offset: \d+ position: \d+|timestamp: -?\d+ offset: \d+|version: 0 producerId: .*"
)
_GAP: Final = re.compile(r"Non-consecutive offsets in .*| *\d+ is followed by \d+")
"""Right in compacted logs; of the others ``_gaps`` knows."""
_directories: list[Path] = []
_hostile: set[Path] = set()


def left(directory: Path) -> None:
    """A broker has ended and left this data directory."""
    if directory not in _directories:
        _directories.append(directory)


def left_by_hostile_clients(partition: Path) -> None:
    """A hostile client wrote to this partition. The broker takes batches there without decoding their records (docs/explanation/log.md), so that
    Kafka's tool finds fault with them."""
    _hostile.add(partition)


def logs_left(*, most_bytes: int | None = None) -> list[Path]:
    """The partitions that brokers have left by a clean stop (after a kill, indexes are not whole), none twice.

    With ``most_bytes`` those of every broker in turn, until so much is reached.
    """
    logs: dict[str, Path] = {}
    per_broker = [_partitions(directory) for directory in _directories]
    total = 0
    for number in range(max(map(len, per_broker), default=0)):
        for partitions in per_broker:
            if number < len(partitions) and (most_bytes is None or total < most_bytes):
                files = [path for path in sorted(partitions[number].iterdir()) if path.suffix == ".log"]
                key = "".join(hashlib.md5(path.read_bytes()).hexdigest() for path in files)
                if logs.setdefault(key, partitions[number]) is partitions[number]:
                    total += sum(path.stat().st_size for path in files)
    return list(logs.values())


def _partitions(directory: Path) -> list[Path]:
    """The partitions with records, largest first."""
    if not (directory / CLEAN_SHUTDOWN).exists():
        return []
    sizes = {
        path: sum(log.stat().st_size for log in path.glob("*.log")) for path in directory.iterdir() if path.is_dir()
    }
    named = [path for path in sizes if re.fullmatch(r".*-\d+", path.name) and sizes[path] and path not in _hostile]
    return sorted(named, key=lambda path: -sizes[path])


def complaints(partitions: Iterable[Path]) -> list[str]:
    """The errors that ``kafka-dump-log --deep-iteration`` reports for the segments and indexes of partitions, per file.

    One start of the tool handles many files. Logs that have been compacted may have gaps.
    """
    wrong: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="tgd-"))
    try:
        files: dict[str, Path] = {}
        for number, partition in enumerate(partitions):
            short = folder / str(number)
            short.symlink_to(partition)
            for path in sorted(partition.iterdir()):
                if path.suffix in _SUFFIXES and path.stat().st_size:
                    files[f"{short}/{path.name}"] = path
            wrong += [] if _may_have_gaps(partition) else _gaps(partition)
        names = list(files)
        for start in range(0, len(names), _FILES_AT_ONCE):
            wrong += _dumped(names[start : start + _FILES_AT_ONCE], files)
    finally:
        shutil.rmtree(folder)
    return wrong


def _dumped(names: list[str], files: dict[str, Path]) -> Iterator[str]:
    try:
        said = kafka_tool(
            "kafka-dump-log", "--deep-iteration", "--skip-record-metadata", "--files", ",".join(names), timeout_s=600
        )
    except AssertionError as ended:  # the tool ends at a record that it cannot read
        said = str(ended).partition("\n")[2]
    current = "?"
    dumped = 0
    for line in said.splitlines():
        if line.startswith("Dumping "):
            current, dumped = line.removeprefix("Dumping "), dumped + 1
        elif not _SAID_OF_GOOD.fullmatch(line) and not _GAP.fullmatch(line):
            yield f"{files.get(current, current)}: {line}"
    if dumped != len(names):
        yield f"{len(names)} files were to be dumped, {dumped} were"


def _may_have_gaps(partition: Path) -> bool:
    topic, _, number = partition.name.rpartition("-")
    cleaned = read_offsets(partition.parent / "cleaner-offset-checkpoint")
    return cleaned.get((topic, int(number)), 0) > 0


def _gaps(partition: Path) -> Iterator[str]:
    """Batches of a log that was not compacted follow one another without a gap."""
    expected = None
    for path in sorted(partition.glob("*.log")):
        data, position = memoryview(path.read_bytes()), 0
        while position < len(data):
            header = BatchHeader.parse(data, position)
            if expected is not None and header.base_offset != expected:
                yield f"{path}: offset {header.base_offset} at position {position} where {expected} is next"
            expected, position = header.last_offset + 1, position + header.size

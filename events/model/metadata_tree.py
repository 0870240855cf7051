"""Reads all events of a Salesforce metadata project: a ``force-app`` tree, a folder of old ``.object`` files, a deploy
zip.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from events.errors import InvalidDefinition, MalformedXml
from events.model.definitions import EventDefinition, from_avro
from events.model.metadata_xml import read, read_object

__all__ = ["read_all", "read_tree", "read_zip"]

_OBJECT_ENDS: Final = ("__e.object-meta.xml", "__e.object")
_SKIPPED: Final = frozenset({"node_modules"})
MAX_ZIP_ENTRIES: Final = 20_000
MAX_ZIP_READ_BYTES: Final = 64 * 1024 * 1024
"""The most bytes to unpack, so that a small zip can't exhaust memory."""


def read_all(path: Path) -> list[EventDefinition]:
    """Every event in a file, a folder of one event, a tree or a zip.

    Raises InvalidDefinition that names all invalid ones.
    """
    if path.is_dir():
        return read_tree(path)
    if path.suffix == ".zip":
        try:
            return read_zip(path.read_bytes(), name=str(path))
        except OSError as error:
            raise InvalidDefinition(f"Cannot read {path}: {error.strerror or error}") from error
    return [read(path)]


def read_tree(root: Path) -> list[EventDefinition]:
    """Every event below a folder, by name; other metadata and hidden folders are ignored."""
    files = sorted(
        path
        for path in root.rglob("*__e*")
        if path.name.endswith((*_OBJECT_ENDS, "__e.avsc"))
        and path.is_file()
        and not any(part.startswith(".") or part in _SKIPPED for part in path.relative_to(root).parts)
    )
    return _collected(str(root), [(str(path), partial(read, path)) for path in files])


def read_zip(data: bytes, *, name: str = "The zip") -> list[EventDefinition]:
    """Every event in a zip of metadata, in the layout of the Metadata API or of an SFDX project."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            texts = _texts(archive, name)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise InvalidDefinition(f"{name} is not a zip that can be read: {error}") from error
    except Exception as error:  # zlib.error, lzma.LZMAError: each compression method has its own
        raise InvalidDefinition(f"{name} is damaged: {type(error).__name__}: {error}") from error
    work: list[tuple[str, Callable[[], EventDefinition]]] = []
    in_order = sorted(texts.items())
    fields: dict[PurePosixPath, list[bytes]] = {}
    for path, text in in_order:
        if path.name.endswith(".field-meta.xml"):
            fields.setdefault(path.parent, []).append(text)
    for path, text in in_order:
        if path.name.endswith(_OBJECT_ENDS):
            work.append((str(path), partial(_object, path, text, fields.get(path.parent / "fields", []))))
        elif path.name.endswith("__e.avsc"):
            work.append((str(path), partial(_record, text)))
    return _collected(name, work)


def _texts(archive: zipfile.ZipFile, name: str) -> dict[PurePosixPath, bytes]:
    entries = archive.infolist()
    if len(entries) > MAX_ZIP_ENTRIES:
        raise InvalidDefinition(f"{name} has {len(entries)} entries; at most {MAX_ZIP_ENTRIES} are read")
    elements = [
        entry
        for entry in entries
        if "__e" in entry.filename and entry.filename.endswith((*_OBJECT_ENDS, "__e.avsc", ".field-meta.xml"))
    ]
    texts, left = {}, MAX_ZIP_READ_BYTES
    for entry in elements:
        with archive.open(entry) as file:
            text = file.read(left + 1)  # the entry's declared size may be wrong
        left -= len(text)
        if left < 0:
            raise InvalidDefinition(f"{name} holds more than {MAX_ZIP_READ_BYTES} bytes of event metadata")
        texts[PurePosixPath(entry.filename)] = text
    return texts


def _object(path: PurePosixPath, text: bytes, parts: list[bytes]) -> EventDefinition:
    try:
        return read_object(path.name.partition(".")[0], text, parts)
    except MalformedXml as error:
        raise InvalidDefinition(str(error)) from error


def _record(text: bytes) -> EventDefinition:
    return from_avro(text.decode())


def _collected(root: str, work: Iterable[tuple[str, Callable[[], EventDefinition]]]) -> list[EventDefinition]:
    made: dict[str, tuple[str, EventDefinition]] = {}
    problems: list[str] = []
    fields: list[str] = []
    for where, make in work:
        try:
            definition = make()
        except (InvalidDefinition, UnicodeDecodeError) as error:
            said = str(error) if isinstance(error, InvalidDefinition) else "not UTF-8 text"
            problems.append(said if where in said else f"{where}: {said}")
            fields += error.fields if isinstance(error, InvalidDefinition) else ()
            continue
        first, _ = made.setdefault(definition.name.lower(), (where, definition))
        if first != where:
            problems.append(f"{where}: event {definition.name} is defined in {first} already")
    if problems:
        raise InvalidDefinition("; ".join(problems), fields=tuple(fields))
    if not made:
        raise InvalidDefinition(f"{root} holds no platform event: no X__e.object-meta.xml, X__e.object or X__e.avsc")
    return [definition for _, definition in sorted(made.values(), key=lambda pair: pair[1].name)]

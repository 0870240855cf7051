from __future__ import annotations

import gc
import io
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import FrameType
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import InvalidDefinition
from events.model import defaults
from events.model.definitions import EventDefinition, EventField, FieldType, from_avro, to_avro_text
from events.model.metadata_export import object_xml, sfdx_files
from events.model.metadata_tree import read_all, read_tree, read_zip
from events.model.metadata_xml import read_object

OBJECTS = "force-app/main/default/objects"
PARCEL = EventDefinition(
    "Parcel__e",
    (
        EventField("Code__c", FieldType.TEXT, required=True, length=12, default_formula="'P-0'", help_text="On it"),
        EventField("Due__c", FieldType.DATE, default_formula="TODAY() + 7"),
        EventField("Fragile__c", FieldType.CHECKBOX, default=True),
        EventField("Note__c", FieldType.LONG_TEXT_AREA, length=500),
        EventField("Sent__c", FieldType.DATE_TIME, default_formula="NOW()"),
        EventField("Weight__c", FieldType.NUMBER, precision=6, scale=1, default_formula="2.5", description="a < b & c"),
    ),
    label="Parcel",
    plural_label="Parcels",
    description="What is on its way",
    publish_behavior="PublishAfterCommit",
)
LETTER = EventDefinition("Letter__e", (EventField("To__c", FieldType.TEXT),))


def tree(root: Path) -> dict[str, bytes]:
    """A project with two events, another object and something hidden."""
    files = {f"{OBJECTS}/{path}": text for path, text in sfdx_files(PARCEL).items()}
    files["old/src/objects/Letter__e.object"] = object_xml(LETTER)
    files[f"{OBJECTS}/Account/Account.object-meta.xml"] = b"<CustomObject/>"
    files["node_modules/x/Bad__e.object"] = b"<a"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text)
    return files


def zipped(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return data.getvalue()


def test_a_tree_gives_every_event_in_it_and_nothing_else(tmp_path: Path) -> None:
    tree(tmp_path)
    assert read_tree(tmp_path) == [LETTER, PARCEL]
    assert read_all(tmp_path / OBJECTS / "Parcel__e") == [PARCEL]
    assert read_all(tmp_path / "old/src/objects/Letter__e.object") == [LETTER]


def test_a_zip_gives_the_same(tmp_path: Path) -> None:
    files = tree(tmp_path)
    del files["node_modules/x/Bad__e.object"]
    (tmp_path / "deploy.zip").write_bytes(zipped(files))
    assert read_all(tmp_path / "deploy.zip") == [LETTER, PARCEL]


def test_everything_that_is_wrong_in_a_tree_is_said_at_once(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / "Broken__e.object").write_text("<a")
    (tmp_path / "Other__e.object").write_text("<CustomField/>")
    (tmp_path / "Letter__e.object").write_bytes(object_xml(LETTER))
    with pytest.raises(InvalidDefinition) as refused:
        read_tree(tmp_path)
    for part in ("Broken__e.object", "Other__e.object", "is defined in"):
        assert part in str(refused.value)


def test_a_folder_without_an_event_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="holds no platform event"):
        read_tree(tmp_path)


def test_a_zip_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="more than"):
        read_zip(zipped({"Big__e.object": b" " * (65 * 1024 * 1024)}))


def test_avro_carries_all_that_metadata_says() -> None:
    assert from_avro(to_avro_text(PARCEL)) == PARCEL
    kept = EventDefinition("Kept__e", LETTER.fields, retention_ms=-1)
    assert from_avro(to_avro_text(kept)) == kept


NAMES = st.from_regex(r"[A-Za-z](_?[A-Za-z0-9]){0,10}", fullmatch=True)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"), exclude_characters="\ufffe\uffff"),
    max_size=20,
)
FIELDS = st.builds(
    lambda name, kind, required, words, number: EventField(
        f"{name}__c",
        kind,
        label=words,
        required=required and kind is not FieldType.CHECKBOX,
        length=1 + number if kind in (FieldType.TEXT, FieldType.LONG_TEXT_AREA) else 0,
        description=words,
        help_text=words[::-1],
        default=required and kind is FieldType.CHECKBOX,
        default_formula=str(number) if kind is FieldType.NUMBER else "",
    ),
    NAMES,
    st.sampled_from(FieldType),
    st.booleans(),
    WORDS,
    st.integers(0, 250),
)


@settings(deadline=None, max_examples=40)
@given(NAMES, st.lists(FIELDS, max_size=4, unique_by=lambda field: field.name.lower()), WORDS)
def test_exported_metadata_is_read_back_unchanged(name: str, fields: list[EventField], words: str) -> None:
    definition = EventDefinition(f"{name}__e", tuple(fields), label=words, description=words)
    assert read_object(definition.name, object_xml(definition)) == definition
    files = sfdx_files(definition)
    parts = {path: text for path, text in files.items() if path.endswith(".field-meta.xml")}
    assert read_zip(zipped(dict(files)))[0].fields == tuple(
        sorted(definition.fields, key=lambda field: f"{definition.name}/fields/{field.name}.field-meta.xml")
    )
    assert len(parts) == len(fields)
    assert from_avro(to_avro_text(definition)) == definition


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=60), st.integers(0, 400), st.binary(max_size=3))
def test_any_zip_gives_events_or_a_reason(data: bytes, position: int, patch: bytes) -> None:
    good = zipped({"Letter__e.object": object_xml(LETTER)})
    for tried in (data, good[:position] + patch + good[position + len(patch) :]):
        try:
            read_zip(tried)
        except InvalidDefinition as error:
            assert str(error)


@pytest.mark.parametrize(
    ("kind", "formula", "value"),
    [
        ("Text", '"a\\"b"', 'a"b'),
        ("Text", "'it''s'", None),
        ("LongTextArea", "'x\\ny'", "x\ny"),
        ("Number", "-1.50", -1.5),
        ("Number", "1e5", None),
        ("Date", "TODAY()", 86_400_000),
        ("Date", "today() - 1", 0),
        ("Date", "DATE(1970,1,3)", 2 * 86_400_000),
        ("Date", "DATE(1970,13,3)", None),
        ("Date", 'DATEVALUE("1970-01-02")', 86_400_000),
        ("DateTime", "NOW() + 0.5", 86_400_007 + 43_200_000),
        ("DateTime", "DATETIMEVALUE('1970-01-01 00:00:01')", 1000),
        ("DateTime", "TODAY()", None),
        ("Text", "Account.Name", None),
    ],
)
def test_a_constant_formula_gives_its_value(kind: str, formula: str, value: object) -> None:
    if value is None:
        with pytest.raises(InvalidDefinition, match="A__c: default value"):
            defaults.parse(kind, formula, field="A__c")
    else:
        assert defaults.parse(kind, formula, field="A__c")(86_400_007) == value


@settings(max_examples=100)
@given(
    st.sampled_from([kind.value for kind in FieldType]),
    st.text(max_size=30) | st.from_regex(r"(TODAY|NOW|DATE)\(.{0,9}\)"),
)
def test_any_formula_has_a_value_or_a_reason(kind: str, formula: str) -> None:
    try:
        defaults.parse(kind, formula, field="A__c")(0)
    except InvalidDefinition as error:
        assert "A__c" in str(error)


def test_work_on_a_zip_grows_with_its_size() -> None:
    """Counted in paths that are looked at, for time says little on a busy machine."""

    def looks(count: int) -> int:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for number in range(count):
                archive.writestr(f"objects/E{number}__e.object", object_xml(replace(LETTER, name=f"E{number}__e")))
        made = 0

        def count_calls(frame: FrameType, event: str, argument: object) -> None:
            nonlocal made
            made += event == "call" and frame.f_code.co_filename.endswith(("pathlib.py", "metadata_tree.py"))

        sys.setprofile(count_calls)
        try:
            assert len(read_zip(packed.getvalue())) == count
        finally:
            sys.setprofile(None)
        return made

    assert looks(200) < 2 * 1.5 * looks(100)


@pytest.mark.parametrize(
    "text",
    [b"<CustomObject>" * 101, b"<CustomObject>" * 50, b"<CustomObject>" + b"<a/>" * 250_000, b"<!DOCTYPE a><a/>", b"x"],
    ids=["deep", "not ended", "many elements", "document type", "no XML"],
)
def test_refused_metadata_is_freed_without_the_garbage_collector(text: bytes) -> None:
    """In reference cycles with frames of ElementTree, three zips of 20,000 such objects took 300 MB."""
    data = zipped({f"objects/A{number}__e.object": text for number in range(3)})
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(InvalidDefinition):
            read_zip(data)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        # Threads that other tests have left may make garbage of their own.
        freed = [type(each).__name__ for each in gc.garbage if _is_of_xml(each)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert freed == []


def _is_of_xml(each: object) -> bool:
    if isinstance(each, FrameType):
        return "xml" in each.f_code.co_filename or "/events/model/" in each.f_code.co_filename
    return "xml" in type(each).__module__.lower() or isinstance(each, Element)

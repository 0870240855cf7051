from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import InvalidDefinition, MalformedXml
from events.model.definitions import FieldType
from events.model.metadata_xml import read, read_object

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
SPACE = 'xmlns="http://soap.sforce.com/2006/04/metadata"'


def document(inner: str) -> str:
    return f"{HEAD}<CustomObject {SPACE}><eventType>HighVolume</eventType>{inner}<label>Low Ink</label></CustomObject>"


def field(name: str, kind: str, **more: object) -> str:
    inside = "".join(f"<{key}>{value}</{key}>" for key, value in {"fullName": name, "type": kind, **more}.items())
    return f"<fields>{inside}</fields>"


def test_an_old_object_file_holds_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "Low_Ink__e.object"
    path.write_text(
        document(
            field("Model__c", "Text", length=20, required="true", label="Printer Model")
            + field("Ink__c", "Number", precision=5, scale=2)
            + field("Empty__c", "Checkbox", defaultValue="true")
            + field("At__c", "DateTime")
            + field("Day__c", "Date")
            + field("Story__c", "LongTextArea", length=32768, visibleLines=3)
        )
    )
    event = read(path)
    assert (event.name, event.label, event.plural_label) == ("Low_Ink__e", "Low Ink", "Low Ink")
    assert [each.type for each in event.fields] == [
        FieldType.TEXT,
        FieldType.NUMBER,
        FieldType.CHECKBOX,
        FieldType.DATE_TIME,
        FieldType.DATE,
        FieldType.LONG_TEXT_AREA,
    ]
    model, ink, empty, *_, story = event.fields
    assert (model.label, model.length, model.required) == ("Printer Model", 20, True)
    assert (ink.precision, ink.scale, empty.default, story.length) == (5, 2, True, 32768)


@pytest.mark.parametrize("by", ["folder", "file"])
def test_an_sfdx_folder_holds_a_file_for_each_field(tmp_path: Path, by: str) -> None:
    folder = tmp_path / "Low_Ink__e"
    (folder / "fields").mkdir(parents=True)
    path = folder / "Low_Ink__e.object-meta.xml"
    path.write_text(document("<publishBehavior>PublishAfterCommit</publishBehavior>"))
    for name in ("A__c", "B__c"):
        content = f"<fullName>{name}</fullName><type>Text</type><length>10</length>"
        (folder / "fields" / f"{name}.field-meta.xml").write_text(f"{HEAD}<CustomField {SPACE}>{content}</CustomField>")
    event = read(folder if by == "folder" else path)
    assert [field.name for field in event.fields] == ["A__c", "B__c"]
    assert event.publish_behavior == "PublishAfterCommit"


def test_an_avro_file_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "x.avsc"
    path.write_text('{"type": "record", "name": "X__e", "fields": [{"name": "A__c", "type": "string"}]}')
    assert read(path).name == "X__e"


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (field("A__c", "Currency"), "Field A__c of X__e: 'Currency' is not a valid value for the enum 'FieldType'; a "),
        (field("A__c", "Number", length=3), "Can not specify 'length' for a CustomField of type Number"),
        (field("A__c", "Text", scale=3), "Can not specify 'scale' for a CustomField of type Text"),
        (field("A__c", "Text", lenght=3), "Element {http://soap.sforce.com/2006/04/metadata}lenght invalid at this"),
        ("<fild/>", "fild invalid at this location in type CustomObject"),
        (field("A__c", "Text", length="long"), "length is 'long'"),
        (field("A__c", "Text", required="maybe"), "required is 'maybe'"),
        (field("A__c", "Text", length=300), "length 300"),
        (field("A__c", "Number", precision=3, scale=9), "precision 3 and scale 9"),
        ("<fields/>", "without fullName"),
    ],
)
def test_a_field_that_no_event_has_is_refused_by_name(inner: str, message: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        read_object("X__e", document(inner))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY b "c">]><CustomObject>&b;</CustomObject>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><CustomObject/>',
        "<CustomObject>",
        "<a>" * 5000 + "</a>" * 5000,
        "",
    ],
)
def test_dangerous_or_broken_xml_is_not_read(text: str) -> None:
    with pytest.raises(MalformedXml):
        read_object("X__e", text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="missing.object"):
        read(tmp_path / "missing.object")


PIECES = st.sampled_from(
    [
        b"<CustomObject>",
        b"</CustomObject>",
        b"<fields>",
        b"</fields>",
        b"<type>Text</type>",
        b"<fullName>A__c</fullName>",
        b"<eventType>HighVolume</eventType>",
        b"<!DOCTYPE a>",
        b"&amp;",
        b"&x;",
        b"<![CDATA[x]]>",
        b"<!-- c -->",
        b"<?p i?>",
    ]
)


@settings(deadline=None)
@given(st.binary(max_size=100) | st.lists(PIECES, max_size=12).map(b"".join))
def test_any_bytes_are_a_definition_or_an_error_with_a_reason(data: bytes) -> None:
    try:
        read_object("X__e", data)
    except (InvalidDefinition, MalformedXml) as error:
        assert str(error)


def test_an_event_without_a_label_is_refused_as_salesforce_does() -> None:
    with pytest.raises(InvalidDefinition, match="X__e: Must specify a non-empty label for the CustomObject"):
        read_object("X__e", "<CustomObject><eventType>HighVolume</eventType></CustomObject>")

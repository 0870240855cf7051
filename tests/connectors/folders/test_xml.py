"""The file source reads XML: elements are records, whatever else a file holds."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.connectors.folders.test_file_source import bench, everything, values

ORDERS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<shop xmlns="urn:shop" xmlns:x="urn:x">
  <about><order>no record of ours</order></about>
  <orders>
    <order id="1" x:day="2026-02-03"><name>M\u00fcller &amp; S\u00f6hne</name><price>1.50</price>
      <line sku="a"><count>2</count></line><line sku="b">as a present<count>3</count></line><tag>new</tag></order>
    <order id="2"><name/><price>20</price><line sku="c"><count>1</count></line><tag>x</tag><tag>y</tag><!-- last --></order>
  </orders>
</shop>
"""


def test_elements_become_rows_with_inferred_types(tmp_path: Path) -> None:
    (tmp_path / "orders.xml").write_bytes(
        ORDERS.replace("<about><order>no record of ours</order></about>", "").encode("latin-1")
    )
    batches = everything(bench(tmp_path, input_format="xml", xml_record_element="order"))
    first, second = values(batches)
    assert first == {
        "id": 1,
        "day": first["day"],
        "name": "M\u00fcller & S\u00f6hne",
        "price": 1.5,
        "line": [{"sku": "a", "count": "2", "value": None}, {"sku": "b", "count": "3", "value": "as a present"}],
        "tag": ["new"],
    }
    assert str(first["day"]) == "2026-02-03" and second["day"] is None and second["name"] is None
    assert second["tag"] == ["x", "y"]


def test_a_schema_gives_types_to_inner_fields_and_bad_rows_are_told(tmp_path: Path) -> None:
    line = {
        "type": "record",
        "name": "L",
        "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
    }
    schema = {
        "type": "record",
        "name": "O",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "price",
                "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
            },
            {"name": "line", "type": {"type": "array", "items": line}},
        ],
    }
    (tmp_path / "orders.xml").write_bytes(ORDERS.encode("latin-1"))
    made = bench(
        tmp_path,
        input_format="xml",
        xml_record_element="order",
        value_schema=json.dumps(schema),
        errors_tolerance="all",
        errors_deadletterqueue_topic_name="letters",
    )
    batches = everything(made)
    assert [(row["id"], str(row["price"]), [each["count"] for each in row["line"]]) for row in values(batches)] == [
        (1, "1.50", [2, 3]),
        (2, "20.00", [1]),
    ]
    (letter,) = values(batches, "letters")
    assert (letter["row"], letter["line"], letter["text"]) == (0, None, '"no record of ours"')


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><r><i><x>&b;</x></i></r>', "entities"),
        ('<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]><r><i><x>&a;</x></i></r>', "entities"),
        ("<r><i><x>1</x></i><i>", "not XML"),
        ("<r>" + "<i>" * 500, "nested more than 100 deep"),
        ("<r><i><x>" + "y" * (65 * 1024 * 1024), "more than 64 MiB"),
        ('<?xml version="1.0" encoding="klingon"?><r/>', "not XML"),
    ],
)
def test_hostile_files_go_to_the_error_path(tmp_path: Path, caplog: Any, content: str, problem: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "wrong").mkdir()
    (tmp_path / "in/1.xml").write_text(content)
    (tmp_path / "in/2.xml").write_text("<r><i><x>fine</x></i></r>")
    made = bench(tmp_path / "in", input_format="xml", halt_on_error="false", error_path=str(tmp_path / "wrong"))
    assert values(everything(made))[-1] == {"x": "fine"}
    assert [path.name for path in (tmp_path / "wrong").iterdir()] == ["1.xml"]
    halting = bench(tmp_path / "wrong", input_format="xml")
    with pytest.raises(Exception, match=problem), halting.task() as running:
        while True:
            running.task.poll()


def test_a_large_file_is_not_in_memory(tmp_path: Path) -> None:
    row = "<i><x>" + "y" * 1000 + "</x></i>\n"
    with (tmp_path / "large.xml").open("w") as file:
        file.write("<r>")
        for _ in range(20_000):
            file.write(row)
        file.write("</r>")
    made = bench(tmp_path, input_format="xml", json_schemaless="true")
    rows = 0
    tracemalloc.start()
    try:
        with made.task() as running:
            while rows < 20_000:
                rows += sum(len(batch) for batch in running.task.poll()[:])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 15_000_000, "the file has 20 MB, and each row some hundred bytes more in Python"


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8).filter(
    lambda t: t.strip()
)
names = st.sampled_from(["a", "b", "c"])


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.dictionaries(names, texts, min_size=1),
            st.dictionaries(st.sampled_from(["d", "e"]), st.lists(texts, min_size=1, max_size=3)),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("xml")
    made = "".join(
        "<row "
        + " ".join(f"{name}={quoteattr(text)}" for name, text in attributes.items())
        + ">"
        + "".join(f"<{name}>{escape(text)}</{name}>" for name, cells in elements.items() for text in cells)
        + "</row>"
        for attributes, elements in rows
    )
    (folder / "rows.xml").write_text(f"<rows>{made}</rows>", encoding="utf-8")
    read = [
        json.loads(value) for value in values(everything(bench(folder, input_format="xml", json_schemaless="true")))
    ]
    expected = [
        attributes
        | {
            name: cells[0].strip() if len(cells) == 1 else [cell.strip() for cell in cells]
            for name, cells in elements.items()
        }
        for attributes, elements in rows
    ]
    assert read == expected

"""XML from outside, read without its dangers: no document types, no entities, no fetching, bounded size and depth."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from events.errors import MalformedXml

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["child", "children", "local_name", "parse", "text_of"]

MAX_XML_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 100


def parse(data: bytes | str) -> Element:
    """The root element. Raises MalformedXml for anything else than well-formed XML without a document type."""
    if len(data) > MAX_XML_BYTES:
        raise MalformedXml(f"The XML is {len(data)} bytes; at most {MAX_XML_BYTES} are read")
    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except DefusedXmlException as error:
        raise MalformedXml(f"The XML has a document type or entities, which are not read: {error}") from error
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise MalformedXml(f"The XML is not well-formed: {error}") from error
    _check_depth(root)
    return root


def _check_depth(root: Element) -> None:
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise MalformedXml(f"The XML is nested more than {MAX_DEPTH} levels deep")
        level = [inner for element in level for inner in element]


def local_name(element: Element) -> str:
    """The element's name without its namespace; comments and instructions have none."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def children(element: Element, name: str) -> Iterator[Element]:
    return (inner for inner in element if local_name(inner) == name)


def child(element: Element, name: str) -> Element | None:
    return next(children(element, name), None)


def text_of(element: Element, name: str, default: str = "") -> str:
    """The text of the first child called ``name``, without blanks around it."""
    found = child(element, name)
    return default if found is None or found.text is None else found.text.strip()

"""Parses untrusted XML safely: no document types, no entities, no fetching, bounded size and depth."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from events.errors import MalformedXml

__all__ = ["XmlReader", "child", "children", "local_name", "parse", "text_of"]

MAX_XML_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 100
MAX_ELEMENTS = 250_000
"""200 events of 800 fields, with a margin."""


def parse(data: bytes | str) -> Element:
    """The root element. Raises MalformedXml unless it is well-formed XML without a document type."""
    reader = XmlReader(len(data))
    reader.feed(data)
    return reader.close()


class XmlReader:
    """Parses XML incrementally. Every method raises MalformedXml."""

    def __init__(self, size: int) -> None:
        """``size`` is the total size in bytes or characters."""
        if size > MAX_XML_BYTES:
            raise MalformedXml(f"The XML is {size} bytes; at most {MAX_XML_BYTES} are read")
        self._tree = _BoundedTree()
        self._parser = DefusedXMLParser(target=self._tree, forbid_dtd=True)
        # Expat calls the parser, which holds expat: a tree that was refused would wait for the garbage collector.
        weakref.finalize(self, vars(self._parser).clear)

    @property
    def root(self) -> Element | None:
        """The root, as far as it has been read."""
        return self._tree.root

    def feed(self, piece: bytes | str) -> None:
        with _well_formed():
            self._parser.feed(piece)

    def close(self) -> Element:
        """The complete root, after the last piece."""
        with _well_formed():
            root: Element = self._parser.close()
        return root


@contextmanager
def _well_formed() -> Iterator[None]:
    try:
        yield
    except DefusedXmlException as error:
        raise MalformedXml(f"The XML has a document type or entities, which are not read: {error}") from error
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        error.__traceback__ = None  # the frame in ElementTree that raised it holds it, and ours hold the document
        raise MalformedXml(f"The XML is not well-formed: {error}") from error


class _BoundedTree(TreeBuilder):
    """A tree with limited depth and size."""

    def __init__(self) -> None:
        super().__init__()
        self.root: Element | None = None
        self._depth = 0
        self._elements = 0

    def start(self, tag: str, attributes: dict[str, str], /) -> Element:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise MalformedXml(f"The XML is nested more than {MAX_DEPTH} levels deep")
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise MalformedXml(f"The XML has more than {MAX_ELEMENTS} elements")
        element = super().start(tag, attributes)
        if self.root is None:
            self.root = element
        return element

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)


def local_name(element: Element) -> str:
    """The element's name without its namespace; comments and instructions have none."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def children(element: Element, name: str) -> Iterator[Element]:
    return (inner for inner in element if local_name(inner) == name)


def child(element: Element, name: str) -> Element | None:
    return next(children(element, name), None)


def text_of(element: Element, name: str, default: str = "") -> str:
    """The text of the first child called ``name``, without surrounding whitespace."""
    child_ = child(element, name)
    return default if child_ is None or child_.text is None else child_.text.strip()

"""Canonical text and compatibility, held against Java Avro itself (the jar that comes with pyspark)."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from registry.errors import InvalidSchema
from registry.formats.avro.compatibility import AmbiguousField, incompatibilities
from registry.formats.avro.schema import AvroSchema
from tests.servers.fixtures import or_skip
from tests.servers.java import java

pytestmark = pytest.mark.servers


class Oracle:
    """Java Avro behind py4j."""

    def __init__(self, jvm: Any, error: type[Exception]) -> None:
        self._avro = jvm.org.apache.avro
        self.error = error

    def parse(self, text: str) -> Any:
        return self._avro.Schema.Parser(self._avro.NameValidator.STRICT_VALIDATOR).parse(text)

    def problems(self, reader: Any, writer: Any) -> list[tuple[str, str, str]]:
        result = self._avro.SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult()
        return [(str(i.getType()), i.getLocation(), i.getMessage()) for i in result.getIncompatibilities()]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        pytest.skip("pyspark, which brings Java Avro, is not installed: pip install 'tidegate[spark]'")
    py4j = pytest.importorskip("py4j.java_gateway")
    jars = Path(found.submodule_search_locations[0]) / "jars"
    program = or_skip(java)
    port, process = py4j.launch_gateway(
        classpath=str(jars / "*"), die_on_exit=True, java_path=program, javaopts=["-Xmx256m"], return_proc=True
    )
    gateway = py4j.JavaGateway(gateway_parameters=py4j.GatewayParameters(port=port, auto_convert=True))
    from py4j.protocol import Py4JJavaError

    yield Oracle(gateway.jvm, Py4JJavaError)
    gateway.shutdown()
    process.communicate(timeout=30)


class Generator:
    """Random schemas, many of them nearly alike, some of them wrong."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.defined: list[str] = []

    def schema(self) -> Any:
        self.defined = []
        return self.type(3)

    def one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def maybe(self, chance: float = 0.3) -> bool:
        return self.random.random() < chance

    def type(self, depth: int) -> Any:
        kind = self.one("primitive", "primitive", "logical", "record", "enum", "fixed", "array", "map", "union", "name")
        if depth == 0:
            kind = "primitive"
        match kind:
            case "primitive":
                return self.one("null", "boolean", "int", "long", "float", "double", "bytes", "string")
            case "logical":
                return self.one(
                    {"type": "long", "logicalType": "timestamp-millis"},
                    {"logicalType": "decimal", "type": "bytes", "scale": 2, "precision": 4},
                    {"type": "int", "x": {"b": 1.5, "a": [1e10, 1e-5, 123456789.125, None, "é\u0001"]}},
                    {"type": "string", "avro.java.string": "String"},
                )
            case "array":
                return {"type": "array", "items": self.type(depth - 1)}
            case "map":
                return {"values": self.type(depth - 1), "type": "map", **({"p": 1} if self.maybe() else {})}
            case "union":
                return [self.type(depth - 1) for _ in range(self.random.randint(0, 3))]
            case "name" if self.defined:
                return self.one(*self.defined)
            case "enum":
                symbols = self.random.sample(["A", "B", "C", "D"], self.random.randint(1, 4))
                default = {"default": self.one("A", "B")} if self.maybe() else {}
                return {"type": "enum", "symbols": symbols, **self.named(), **default}
            case "fixed":
                return {"type": "fixed", "size": self.one(4, 8), **self.named()}
        return self.record(depth)

    def named(self) -> dict[str, Any]:
        name = self.one("R", "S", "T", "n.R", "m.n.S", "U", "V", "W")
        made: dict[str, Any] = {"name": name}
        if self.maybe():
            made["namespace"] = self.one("n", "m.n", "")
        if self.maybe():
            made["aliases"] = self.random.sample(["R", "S", "n.R", "x.T"], 2)
        if self.maybe():
            made["doc"] = self.one("", 'quote " and \\', "täxt\n")
        self.defined.append(name)
        return made

    def record(self, depth: int) -> Any:
        made = {"type": self.one("record", "record", "record", "error"), **self.named()}
        names = self.random.sample(["a", "b", "c", "d"], self.random.randint(0, 4))
        made["fields"] = [self.field(name, depth) for name in names]
        return made

    def field(self, name: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "type": self.type(depth - 1)}
        if self.maybe():
            made["default"] = self.one(None, 1, 0, "x", True, 1.5, [], {}, 1e20, "A")
        elif isinstance(made["type"], str) and self.maybe(0.7):
            good = {
                "int": 3,
                "long": 1 << 40,
                "string": "s",
                "double": 0.1,
                "float": 1e8,
                "boolean": False,
                "bytes": "\u00ff",
            }
            if made["type"] in good:
                made["default"] = good[made["type"]]
        if self.maybe(0.2):
            made["aliases"] = self.random.sample(["a", "b", "e"], self.random.randint(1, 2))
        if self.maybe(0.1):
            made["order"] = self.one("ignore", "descending", "ASCENDING")
        if self.maybe(0.1):
            made["doc"] = "d"
        if self.maybe(0.1):
            made["custom"] = {"z": 1, "a": 2}
        return made


def ours(text: str) -> AvroSchema | None:
    try:
        return AvroSchema.parse(text)
    except InvalidSchema:
        return None


def theirs(oracle: Oracle, text: str) -> Any:
    try:
        return oracle.parse(text)
    except oracle.error:
        return None


def test_canonical_text_is_javas(oracle: Oracle) -> None:
    accepted = 0
    for seed in range(600):
        text = json.dumps(Generator(seed).schema())
        mine, java_schema = ours(text), theirs(oracle, text)
        assert (mine is None) == (java_schema is None), text
        if mine is not None:
            accepted += 1
            assert mine.canonical == java_schema.toString(), text
    assert accepted > 200


def test_compatibility_is_javas(oracle: Oracle) -> None:
    pool = []
    for seed in range(1000):
        text = json.dumps(Generator(seed).schema())
        if (mine := ours(text)) is not None and len(text) > 40 and (java_schema := theirs(oracle, text)) is not None:
            pool.append((mine, java_schema))
    chance = random.Random(1)
    incompatible = 0
    for _ in range(1500):
        (reader, java_reader), (writer, java_writer) = chance.choice(pool), chance.choice(pool)
        try:
            expected: list[tuple[str, str, str]] | None = oracle.problems(java_reader, java_writer)
        except oracle.error:
            expected = None
        try:
            found: list[tuple[str, str, str]] | None = [
                (reason.kind.value, reason.path, reason.detail)
                for reason in incompatibilities(reader.type, writer.type)
            ]
        except AmbiguousField:
            found = None
        assert found == expected, f"reader {reader.canonical} writer {writer.canonical}"
        incompatible += bool(found)
    assert 100 < incompatible < 1500

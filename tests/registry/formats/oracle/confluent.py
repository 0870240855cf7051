"""Asks Confluent's own classes about generated schemas of all three types, and keeps the answers.

    python -m tests.registry.formats.oracle.confluent CLASSPATH [json] [protobuf] [avro_confluent]

CLASSPATH is where Confluent's ``client``, ``json-schema-provider`` and ``protobuf-provider`` (8.5.0, built from
github.com/confluentinc/schema-registry, commit 794611bd) and the compiled ``Confluent.java`` beside this file are, with the
libraries they need. (Of json-sKema, 0.29 was used with its change #207 applied, which makes it what Confluent's sources expect.)
Confluent's artifacts are not on Maven Central, so this is done by hand once; the tests need no Java.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tests.registry.formats.oracle import avro_schemas
from tests.registry.formats.oracle.json_schemas import Schemas
from tests.registry.formats.oracle.kept import write
from tests.registry.formats.oracle.protobuf_files import BY_HAND, Files
from tests.servers.java import java

JSON_SEEDS = range(900)
PROTOBUF_SEEDS = range(450)
AVRO_SEEDS = range(20_000, 20_300)


def ask(classpath: str, questions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    text = "\n".join(map(json.dumps, questions))
    done = subprocess.run(
        [java(), "-cp", classpath, "Confluent"], input=text, capture_output=True, text=True, check=True
    )
    return map(json.loads, done.stdout.splitlines())


def json_questions() -> Iterator[dict[str, Any]]:
    for seed in JSON_SEEDS:
        schemas = Schemas(seed)
        old = schemas.root()
        texts = [json.dumps(schema, ensure_ascii=False) for schema in (old, schemas.changed(old))]
        yield {"type": "JSON", "texts": texts, "pairs": [[0, 1], [1, 0]]}


def protobuf_questions() -> Iterator[dict[str, Any]]:
    for text in BY_HAND:
        yield {"type": "PROTOBUF", "texts": [text], "pairs": []}
    for seed in PROTOBUF_SEEDS:
        files = Files(seed)
        old = files.file()
        texts = [files.text(file) for file in (old, files.changed(old))]
        yield {"type": "PROTOBUF", "texts": texts, "references": files.references, "pairs": [[0, 1], [1, 0]]}


def avro_questions() -> Iterator[dict[str, Any]]:
    for seed in AVRO_SEEDS:
        schemas = avro_schemas.Schemas(seed)
        old = schemas.schema()
        texts = [json.dumps(schema, ensure_ascii=False) for schema in (old, schemas.changed(old))]
        yield {"type": "AVRO", "texts": texts, "pairs": [[0, 1], [1, 0]]}


def kept(question: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Question and answer, without parts that the tests do not use and without answers that Java failed to give."""
    schemas = [None if "error" in said else [said["canonical"], said["normalized"]] for said in answer["schemas"]]
    pairs = [
        [original, update, said["strict"], said.get("lenient"), said["messages"]]
        for (original, update), said in zip(question["pairs"], answer["pairs"], strict=True)
        if "strict" in said
    ]
    entry = {"texts": question["texts"], "schemas": schemas, "pairs": pairs}
    if question.get("references"):
        entry["references"] = question["references"]
    return entry


def main(classpath: str, *names: str) -> None:
    makers = {"json": json_questions, "protobuf": protobuf_questions, "avro_confluent": avro_questions}
    for name in names or makers:
        questions = list(makers[name]())
        entries = [kept(*both) for both in zip(questions, ask(classpath, questions), strict=True)]
        print(f"{name}: {len(entries)} entries, {write(name, entries)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Random ``.proto`` files in pairs that differ slightly."""

from __future__ import annotations

import copy
import random
from typing import Any

SCALARS = (
    "int32",
    "int64",
    "uint32",
    "sint32",
    "sint64",
    "bool",
    "string",
    "bytes",
    "fixed32",
    "sfixed64",
    "float",
    "double",
)
WELL_KNOWN = ("google.protobuf.Timestamp", "google.type.Date", "confluent.type.Decimal", "google.protobuf.StringValue")
REFERENCE = """syntax = "proto3";
package other;
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { string note = 50001; repeated Level levels = 50002; Rule rule = 50003; }
message Shared { int32 n = 1; Inner inner = 2; message Inner { string s = 1; } }
message Rule { int32 least = 1; int32 most = 2; Rule rule = 3; }
enum Level { LOW = 0; HIGH = 1; }
"""


class Files:
    """Chance with a seed. A file is a nested dict; ``text`` writes it, not always in the canonical layout."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.proto3 = self.maybe(0.75)
        self.references = {"other.proto": REFERENCE} if self.maybe(0.5) else {}

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def file(self) -> dict[str, Any]:
        names = self.random.sample(["A", "B", "C"], self.one(1, 2, 3))
        made: dict[str, Any] = {
            "package": self.one(None, "p", "p.q"),
            "names": names,
            "enums": {"E": self.enum("E")} if self.maybe(0.6) else {},
            "options": self.random.sample(
                ['java_package = "x.\\"y"', "java_multiple_files = true", "optimize_for = SPEED"], self.one(0, 1, 2)
            ),
            "service": self.maybe(0.15),
        }
        self.top = made
        made["messages"] = {name: self.message(2) for name in names}
        return made

    def enum(self, prefix: str) -> list[tuple[str, int]]:
        tags = self.random.sample(range(1, 6), self.one(0, 1, 2, 3))
        return [(f"{prefix}_ZERO", 0), *((f"{prefix}_{self.one('X', 'Y')}{tag}", tag) for tag in tags)]

    def message(self, depth: int) -> dict[str, Any]:
        tags = self.random.sample(range(1, 12), self.one(0, 1, 2, 3, 4, 5))
        inner = {"In": self.message(depth - 1)} if depth and self.maybe(0.4) else {}
        made: dict[str, Any] = {"inner": inner, "enums": {"Kind": self.enum("K")} if self.maybe(0.2) else {}}
        split = self.random.randint(0, len(tags)) if self.maybe(0.4) else len(tags)
        types = [*inner, *made["enums"]]
        made["fields"] = {tag: self.field(tag, types) for tag in tags[:split]}
        members = {tag: self.field(tag, types, plain=True) for tag in tags[split:]}
        made["oneofs"] = {self.one("choice", "either"): members} if members else {}
        if self.maybe(0.2):
            made["reserved"] = self.one("reserved 30;", "reserved 40 to 42, 35, 30 to 30;", 'reserved "gone", "away";',
                                        "reserved 100 to max;")  # fmt: skip
        if self.maybe(0.1):
            made["option"] = self.one("deprecated = true", "no_standard_descriptor_accessor = false")
        return made

    def field(self, tag: int, types: list[str], *, plain: bool = False) -> dict[str, Any]:
        names = [*SCALARS, *SCALARS, *types, *types, *self.top["names"], *self.top["enums"], self.one(*WELL_KNOWN)]
        if self.references:
            names += ["other.Shared", "other.Shared.Inner", "other.Level"]
        type_ = self.one(*names)
        made: dict[str, Any] = {"type": type_, "name": f"{self.one('f', 'g', 'long_name')}{tag}", "options": []}
        if not plain:
            made["label"] = (
                self.one(None, None, "optional", "repeated")
                if self.proto3
                else self.one("optional", "optional", "repeated", "required")
            )
            if self.maybe(0.12):
                made["type"], made["label"] = f"map<{self.one('string', 'int32')}, {type_}>", None
        options = ["deprecated = true", f'json_name = "j{tag}"']
        if self.references:
            options += [
                '(other.note) = "say \\"no\\"\\n"',
                "(other.levels) = HIGH",
                "(other.rule) = {least: 0x10, most: 20}",
                "(other.rule).least = 3",
                "(other.rule).rule.most = 7",
                "(other.rule) = { rule { least: 1 } most: 2 }",
            ]
        if not self.proto3 and made.get("label") == "optional" and type_ in ("int32", "string", "double"):
            options.append("default = " + {"int32": "5", "string": '"d"', "double": "1.23456"}[type_])
        if self.maybe(0.25):
            made["options"] = self.random.sample(options, self.one(1, 1, min(2, len(options))))
        return made

    def changed(self, file: dict[str, Any]) -> dict[str, Any]:
        made = copy.deepcopy(file)
        for _ in range(self.one(1, 1, 2, 3)):
            self.change(made)
        return made

    def change(self, file: dict[str, Any]) -> None:
        messages: list[dict[str, Any]] = []
        pending = list(file["messages"].values())
        while pending:
            messages.append(pending.pop())
            pending += messages[-1]["inner"].values()
        message = self.one(*messages)
        types = [*message["inner"], *message["enums"]]
        fields = message["fields"]
        match self.random.randrange(9):
            case 0 if fields:
                fields.pop(self.one(*fields))
            case 1:
                tag = self.random.randrange(12, 20)
                fields[tag] = self.field(tag, types)
            case 2 | 3 if fields:
                tag = self.one(*fields)
                fields[tag] = self.field(tag, types)
            case 4 if fields:
                tag = self.one(*fields)
                moved = fields.pop(tag)
                if not moved["type"].startswith("map<"):
                    moved["label"] = None
                    message["oneofs"].setdefault(self.one("choice", "either"), {})[tag] = moved
            case 5 if message["oneofs"]:
                name = self.one(*message["oneofs"])
                members = message["oneofs"][name]
                tag = self.one(*members)
                moved = members.pop(tag)
                if self.maybe(0.5):
                    fields[tag] = {**moved, "label": None if self.proto3 else "optional"}
                if not members:
                    del message["oneofs"][name]
            case 6 if file["enums"]:
                file["enums"]["E"] = self.enum("E")
            case 7:
                file["package"] = self.one(None, "p", "p.q", file["package"], file["package"])
            case 8 if len(file["messages"]) > 1:
                self.random.shuffle(file["names"])

    def text(self, file: dict[str, Any]) -> str:
        out = ["// made by chance", f'syntax = "{"proto3" if self.proto3 else "proto2"}";']
        if file["package"]:
            out.append(f"package {file['package']};")
        imports = ["google/protobuf/timestamp.proto", "google/type/date.proto", "confluent/type/decimal.proto",
                   "google/protobuf/wrappers.proto", *self.references]  # fmt: skip
        out += [f'import "{path}";' for path in imports]
        out += [f"option {option};" for option in file["options"]]
        for name in file["names"]:
            out += self.message_text(name, file["messages"][name])
        for name, constants in file["enums"].items():
            out += self.enum_text(name, constants)
        if file["service"]:
            first = file["names"][0]
            out.append(f"service S {{ rpc Do({first}) returns (stream {first}) {{ option deprecated = true; }} }}")
        return "\n".join(out) + "\n"

    def enum_text(self, name: str, constants: list[tuple[str, int]]) -> list[str]:
        return [f"enum {name} {{", *(f"  {constant} = {tag};" for constant, tag in constants), "}"]

    def message_text(self, name: str, message: dict[str, Any]) -> list[str]:
        out = [f"message {name} {{ /* so */"]
        if "option" in message:
            out.append(f"option {message['option']};")
        for tag, field in message["fields"].items():
            out.append(self.field_text(tag, field))
        for inner, content in message["inner"].items():
            out += self.message_text(inner, content)
        for inner, constants in message["enums"].items():
            out += self.enum_text(inner, constants)
        for oneof, members in message["oneofs"].items():
            out += [f"oneof {oneof} {{", *(self.field_text(tag, field) for tag, field in members.items()), "}"]
        out += [message["reserved"]] if "reserved" in message else []
        return [*out, "}"]

    def field_text(self, tag: int, field: dict[str, Any]) -> str:
        label = f"{field['label']} " if field.get("label") else ""
        options = f" [{', '.join(field['options'])}]" if field["options"] else ""
        return f"  {label}{field['type']} {field['name']} = {tag}{options};"


BY_HAND = (
    "",
    ";",
    'syntax = "proto3";',
    'syntax = "proto4";',
    'package a; syntax = "proto3";',
    'syntax = "proto3"; syntax = "proto3";',
    'edition = "2023"; message M {}',
    "message M { int32 a = 1; }",
    'syntax = "proto3"; message M { required int32 a = 1; }',
    'syntax = "proto3"; message M { int32 a = x; }',
    'syntax = "proto3"; message M { int32 a = 99999999999; }',
    'syntax = "proto3"; message M { int32 a = 0x1F; }',
    'syntax = "proto3"; message M { int32 1a = 1; }',
    'syntax = "proto3"; message M { int32 a = 1 }',
    'syntax = "proto3"; message M { int32 a = 1; int64 a = 1; }',
    'syntax = "proto3"; message M { Nope a = 1; }',
    'syntax = "proto3"; message M { map<string, Nope> a = 1; }',
    'syntax = "proto3"; message M {} message M {}',
    'syntax = "proto3"; message M {} enum M { Z = 0; }',
    'syntax = "proto3"; message M { repeated map<string, string> a = 1; }',
    'syntax = "proto3"; message M { optional map<string, string> a = 1; }',
    'syntax = "proto3"; message M { map < string , M > a = 1; map<int32, .M> b = 2; }',
    'syntax = "proto3"; message M { reserved 1, 5 to 7, 9 to max; reserved "a", \'b\'; reserved 3; }',
    'syntax = "proto3"; message M { reserved 1 2; }',
    'syntax = "proto3"; enum E { option allow_alias = true; A = 0; B = 0; C = -1; reserved 5 to 6, 4; reserved "X"; }',
    'syntax = "proto3"; enum E { reserved 2; }',
    'syntax = "proto3"; enum E {}',
    'syntax = "proto3"; message M { oneof o { option (x) = true; int32 a = 2; string b = 1; } oneof empty {} }',
    'syntax = "proto2"; message M { optional group G = 1 { required int32 z = 2; optional int32 a = 1; } extensions 100 to 199, 300; '
    "extensions 500 to max [verification = UNVERIFIED]; extend M { optional int32 x = 100; } } extend M { repeated M y = 101; }",
    'syntax = "proto2"; message M { oneof o { group G = 1 { optional int32 a = 1; } int32 b = 2; } }',
    'syntax = "proto2"; message M { optional int32 a = 1 [default = -0x10, deprecated = true, json_name = "A"]; optional E e = 2 '
    "[default = X]; optional bool b = 3 [default = true]; optional float f = 4 [default = inf]; optional double d = 5 "
    '[default = 1e-5]; optional bytes s = 6 [default = "\\x01\\101q"]; optional int64 o = 7 [default = 010]; } enum E { X = 0; }',
    'syntax = "proto3"; option java_package = "a" "b"; option (my.opt) = { a: 1, b: "x" c { d: TRUE } e: [1, 2] f: [{g: 1}] }; '
    "option (my.opt).x.y = 5; option optimize_for = CODE_SIZE; message M { option (m).(n.o).p = 'q\\'s'; }",
    'syntax = "proto3"; service S { option deprecated = true; rpc A (M) returns (stream M); rpc B (stream .p.M) returns (M) {} '
    'rpc C (M) returns (M) { option (h) = { get: "/v1" }; } } message M {}',
    'syntax = "proto3"; service S { rpc A (Nope) returns (M); } message M {}',
    'syntax = "proto3"; import public "b.proto"; import weak "c.proto"; import "a.proto"; import \'a.proto\'; message M {}',
    'syntax = "proto3"; message Outer { message Inner { Outer o = 1; Inner i = 2; Outer.Inner oi = 3; } Inner i = 1; } '
    "message Inner { Outer.Inner x = 1; }",
    'syntax = "proto3"; /* a */ message /* b */ M // c\n{ int32 /* d */ a = 1; // e\n /* f */ }',
    'syntax = "proto3"; message message { string message = 1; string package = 2; string option_ = 3; rpc rpc = 4; } message rpc {}',
    'syntax = "proto3"; message M { a . b c = 1; } ',
    'syntax = "proto3"; message M { google.protobuf.Any a = 1; google.type.Money m = 2; confluent.type.Variant v = 3; }',
    'syntax = "proto3"; import "confluent/meta.proto"; message M { option (confluent.message_meta) = { doc: "d", params: [{key: "k", '
    'value: "v"}], tags: ["PII", "X"] }; string a = 1 [(confluent.field_meta).tags = "B", (confluent.field_meta).tags = "A", '
    '(confluent.field_meta).doc = "x"]; }',
    'syntax = "proto3"; message M { string a = 1 [(nope).x = 1.23456, (nope).x = 2, foo = 12345678901234567890, bar = 1e3, '
    "baz = -5, qux = 0.5, nan = nan]; }",
    'syntax = "proto3"; message M { string a = 1 [deprecated = true,]; }',
    'syntax = "proto3"; message M { string a = 1 []; }',
    'syntax = "proto3"; message M { "x" a = 1; }',
    'syntax = "proto3"; message M {',
    'syntax = "proto3"; message M { string a = 1 [x = "unfinished]; }',
    'syntax = "proto3"; /* unfinished',
    'syntax = "proto3"; import a; message M {}',
    'syntax = "proto3"; package ; message M {}',
    "{}",
    "hello",
)
"""Files that chance would not make, each by itself."""

"""Steps run on a database while a connector reads it: the same for Debezium, whose records are stored, and for ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["SCENARIOS", "Scenario"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``before`` stands when the connector starts; each of ``after`` is one transaction while it streams."""

    name: str
    config: dict[str, str] = field(default_factory=dict)
    before: str = ""
    after: tuple[str, ...] = ()


_TYPES = """
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE TYPE mood AS ENUM ('fine', 'bad');
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN money2 AS numeric(8, 2);
CREATE TABLE kinds (id bigint PRIMARY KEY, i2 int2, i4 int4 NOT NULL DEFAULT 7, i8 int8 DEFAULT 8, f4 real, f8 float8 DEFAULT 1.5,
  n numeric, np numeric(10, 2) DEFAULT 1.25, nn numeric(5) NOT NULL, b bool DEFAULT true, t text DEFAULT 'x', v varchar(10), c char(5), bc "char",
  by bytea, bi bit(1), bi8 bit(8), vb varbit(12), d date, ti time, ti3 time(3), tt timetz, ts timestamp, ts3 timestamp(3), ts0 timestamp(0),
  tz timestamptz, iv interval, u uuid, j json, jb jsonb, x xml, m mood, p positive, m2 money2, mo money, o oid, ip inet, ci cidr,
  ma macaddr, pt point, h hstore, r int4range, nr numrange, tr tstzrange, lt name, ai int[], at text[], an numeric(6, 2)[], ats timestamp[],
  ad date[], ab bool[], au uuid[], af float8[], tsv tsvector);
"""
_ROW = """INSERT INTO kinds VALUES ({id}, 2, 3, 4, 1.5, 2.25, 123.4567, 12345678.90, 12345, true, 'tëxt', 'v', 'c', 'q', '\\x00ff10', B'1', B'10000001',
  B'1011', '2024-02-29', '23:59:59.123456', '01:02:03.456', '10:11:12.5+02', '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05.678',
  '1969-12-31 23:59:58', '2024-01-02 03:04:05.678901+02', '1 year 2 mons 3 days 04:05:06.789', '9c5b94b1-35ad-49bb-b118-8e8fc24abf80',
  '{{"a": 1}}', '{{"b": [1, 2]}}', '<a>1</a>', 'fine', 5, 3.14, 12.34, 42, '10.1.2.3/24', '10.0.0.0/8', '08:00:2b:01:02:03', '(1.5,2.5)',
  'k=>v, z=>NULL', '[1,5)', '(1.5,2.5]', '[2024-01-01 00:00:00+00,2024-02-01 00:00:00+00)', 'nom', '{{1,NULL,3}}', '{{a,NULL,"c,d"}}', '{{1.5,2.25}}',
  '{{"2024-01-02 03:04:05.678901"}}', '{{2024-02-29}}', '{{t,f}}', '{{9c5b94b1-35ad-49bb-b118-8e8fc24abf80}}', '{{1.5,NaN}}', 'fat cat');
"""
_EDGES = """INSERT INTO kinds (id, i2, f4, f8, n, np, nn, d, ts, tz, ti, iv, mo, t, i4, by)
  VALUES ({id}, -32768, 'NaN', 'Infinity', -0.000000000000000001, -99999999.99, -99999, '0044-03-15 BC', '0001-01-01 00:00:00', '9999-12-31 23:59:59.999999+00',
  '00:00:00', '-1 mons +2 days -00:00:01', -5.5, '', 2147483647, '');
  INSERT INTO kinds (id, nn, d, ts, tz, n, f8, b, t, np, i8) VALUES ({id} + 1, 0, 'infinity', '-infinity', 'infinity', 1e20, NULL, NULL, NULL, NULL, NULL);
"""
_AFTER = (_ROW.format(id=11), _EDGES.format(id=12))


def _kinds(name: str, **config: str) -> Scenario:
    properties = {key.replace("_", "."): value for key, value in config.items()}
    return Scenario(f"kinds_{name}", properties, _TYPES + _ROW.format(id=1) + _EDGES.format(id=2), _AFTER)


_CHANGES_BEFORE = """
CREATE TABLE plain (id int PRIMARY KEY, word text);
CREATE TABLE pair (a int, b text, note text, PRIMARY KEY (b, a));
CREATE TABLE whole (id int PRIMARY KEY, word text, big text);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE toast (id int PRIMARY KEY, big text, bytes bytea, tags text[], word text);
ALTER TABLE toast ALTER big SET STORAGE EXTERNAL, ALTER bytes SET STORAGE EXTERNAL, ALTER tags SET STORAGE EXTERNAL;
CREATE TABLE keyless (word text, n int);
CREATE TABLE byindex (id int NOT NULL, code text NOT NULL, word text);
CREATE UNIQUE INDEX byindex_code ON byindex (code);
ALTER TABLE byindex REPLICA IDENTITY USING INDEX byindex_code;
CREATE TABLE parts (id int, region text, word text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b');
CREATE TABLE "Odd Näme" ("Id" int PRIMARY KEY, "a column" text);
CREATE TABLE later (id int PRIMARY KEY, a text);
INSERT INTO plain VALUES (1, 'one'), (2, NULL);
INSERT INTO pair VALUES (1, 'x', 'n');
INSERT INTO parts VALUES (1, 'a', 'pa'), (2, 'b', 'pb');
INSERT INTO keyless VALUES ('k', 1);
INSERT INTO "Odd Näme" VALUES (1, 'odd');
"""
_BIG = "repeat('0123456789', 1000)"
_CHANGES = (
    "INSERT INTO plain VALUES (3, 'three'); INSERT INTO pair VALUES (2, 'y', 'm'); UPDATE plain SET word = 'uno' WHERE id = 1",
    "DELETE FROM plain WHERE id = 2",
    "UPDATE plain SET id = 30 WHERE id = 3",
    "UPDATE pair SET note = NULL WHERE a = 1; UPDATE pair SET a = 9 WHERE a = 2; DELETE FROM pair WHERE a = 1",
    f"INSERT INTO whole VALUES (1, 'a', {_BIG}), (2, 'b', 'small')",
    "UPDATE whole SET word = 'aa' WHERE id = 1; UPDATE whole SET id = 20 WHERE id = 2; DELETE FROM whole WHERE id = 20",
    f"INSERT INTO toast VALUES (1, {_BIG}, decode({_BIG}, 'hex'), ARRAY[{_BIG}, 'b'], 'w')",
    "UPDATE toast SET word = 'ww' WHERE id = 1",
    f"UPDATE toast SET big = {_BIG} || '!' WHERE id = 1",
    "INSERT INTO keyless VALUES ('l', 2)",
    "INSERT INTO byindex VALUES (1, 'c1', 'w'); UPDATE byindex SET word = 'v'; UPDATE byindex SET code = 'c2'; DELETE FROM byindex",
    "INSERT INTO parts VALUES (3, 'a', 'pc'); UPDATE parts SET word = 'pp' WHERE id = 1; UPDATE parts SET region = 'b' WHERE id = 3",
    "BEGIN; INSERT INTO plain VALUES (98, 'rolled back'); ROLLBACK",
    "BEGIN; INSERT INTO plain VALUES (40, 'before'); SAVEPOINT s; INSERT INTO plain VALUES (41, 'no'); ROLLBACK TO s; INSERT INTO plain VALUES (42, 'after'); COMMIT",
    "INSERT INTO \"Odd Näme\" VALUES (2, 'même')",
    "INSERT INTO later VALUES (1, 'one')",
    "ALTER TABLE later ADD b int DEFAULT 5; INSERT INTO later VALUES (2, 'two', 2)",
    "ALTER TABLE later RENAME a TO c; INSERT INTO later VALUES (3, 'three', 3)",
    "ALTER TABLE later DROP c; INSERT INTO later VALUES (4, 4)",
    "ALTER TABLE later ALTER b TYPE text; INSERT INTO later VALUES (5, 'five')",
    "CREATE TABLE new (id int PRIMARY KEY, word text); INSERT INTO new VALUES (1, 'n')",
    "INSERT INTO plain SELECT g, 'bulk ' || g FROM generate_series(100, 104) g",
    "TRUNCATE plain, pair",
    "SELECT pg_logical_emit_message(true, 'note', 'in a transaction'); INSERT INTO plain VALUES (50, 'x')",
    "SELECT pg_logical_emit_message(false, 'note', 'outside')",
)

_MASKED_BEFORE = """
CREATE TYPE mood AS ENUM ('fine', 'bad');
CREATE TABLE masked (code varchar(12), word text, short varchar(20), fixed char(8), j json, u uuid, m mood, n int, hidden text, big text,
  required text NOT NULL, PRIMARY KEY (code, hidden));
ALTER TABLE masked ALTER big SET STORAGE EXTERNAL;
CREATE TABLE cut (code text PRIMARY KEY, word text, big text);
ALTER TABLE cut ALTER big SET STORAGE EXTERNAL;
INSERT INTO masked VALUES ('abc', 'secret wörd', 'a short secret', 'fix', '{"a": 1}', '9c5b94b1-35ad-49bb-b118-8e8fc24abf80', 'fine', 1, 'h1', 'b', 'r'),
  ('abd', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'h2', NULL, '');
INSERT INTO cut VALUES ('one', 'wörds 𝄞', NULL);
"""
_MASKED = (
    f"INSERT INTO masked SELECT 'abe', 'other', 'ü', 'x', '2', NULL, 'bad', 2, 'h3', {_BIG}, 'r'",
    "UPDATE masked SET n = 3 WHERE code = 'abe'",
    "UPDATE masked SET word = NULL, short = NULL, fixed = NULL WHERE code = 'abe'",
    "UPDATE masked SET hidden = 'h4' WHERE code = 'abe'",
    "DELETE FROM masked WHERE code = 'abe'",
    f"INSERT INTO cut SELECT 'two', NULL, {_BIG}; UPDATE cut SET word = 'xyz' WHERE code = 'two'; UPDATE cut SET code = 'twofold' WHERE code = 'two'",
)

_ZONED_ROW = """INSERT INTO zoned VALUES ({id}, '2024-01-02 03:04:05.678+00', '2024-01-02 03:04:05.678+00', '2024-01-02 03:04:05+00',
  '2024-01-02 03:04:05.6+00', '2024-01-02 03:04:05+00', '{{"2024-01-02 03:04:05.678+00",NULL,"2024-01-02 03:04:05+00"}}', '{{"2024-01-02 03:04:05+00"}}');
  INSERT INTO zoned VALUES ({id} + 1, '2024-01-02 03:04:05+02', '1844-03-15 00:00:00+00', '12024-01-02 03:04:05.5+00', '1969-12-31 23:59:59.999+00', NULL);
  INSERT INTO zoned VALUES ({id} + 2, 'infinity', '-infinity', NULL, NULL, '2024-01-02 03:04:05.123456+00');
"""
_ZONED = """CREATE TABLE zoned (id int PRIMARY KEY, z timestamptz, z0 timestamptz(0), z3 timestamptz(3), z1 timestamptz(1), z6 timestamptz(6),
  az timestamptz[], az3 timestamptz(3)[]);
"""
_COUNTED = """CREATE TABLE counted (id serial PRIMARY KEY, big bigserial, small smallserial, n int DEFAULT 7, word text DEFAULT 'w');
CREATE TABLE bigly (id bigserial PRIMARY KEY, word text);
CREATE TABLE identified (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, other bigint GENERATED ALWAYS AS IDENTITY, word text);
CREATE SEQUENCE numbers;
CREATE TABLE sequenced (id int PRIMARY KEY DEFAULT nextval('numbers'), n numeric(5, 2) DEFAULT nextval('numbers'), f float8 DEFAULT nextval('numbers'),
  t text DEFAULT nextval('numbers'), at timestamp DEFAULT now(), made int DEFAULT 1 + 1, optional bigint DEFAULT nextval('numbers'));
"""
_NAMED = """CREATE TABLE orders_1 (id int PRIMARY KEY, word text, hidden text);
CREATE TABLE orders_2 (id int PRIMARY KEY, word text, hidden text);
CREATE TABLE clients_1 (id int PRIMARY KEY, word text, hidden text);
CREATE TABLE others_1 (id int PRIMARY KEY, word text, hidden text);
INSERT INTO orders_1 VALUES (1, 'a', 'h');
INSERT INTO orders_2 VALUES (1, 'b', 'h');
INSERT INTO clients_1 VALUES (1, 'c', 'h');
INSERT INTO others_1 VALUES (1, 'd', 'h');
"""
_MADE_TYPES: Final = [
    "int2",
    "int4",
    "int8",
    "oid",
    "float4",
    "float8",
    "numeric",
    "numeric(5,2)",
    "money",
    "bool",
    "text",
    "varchar",
    "varchar(5)",
    "char(5)",
    '"char"',
    "name",
    "bytea",
    "bit",
    "bit(1)",
    "bit(3)",
    "varbit",
    "varbit(5)",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "timestamp(3)",
    "interval",
    "uuid",
    "json",
    "jsonb",
    "xml",
    "inet",
    "cidr",
    "macaddr",
    "point",
    "hstore",
    "int4range",
    "numrange",
    "tstzrange",
    "mood",
    "positive",
    "tsvector",
    "citext",
    "int[]",
    "text[]",
]
_MADE_COLUMNS: Final = ", ".join(f"c{n} {kind} DEFAULT made{n}()" for n, kind in enumerate(_MADE_TYPES))
_LITERALS: Final = (
    ("mood", "'fine'"), ("positive", "5"), ("inet", "'10.0.0.1'"), ("oid", "5"), ('"char"', "'x'"), ("bytea", "'\\\\x00ff'"),
    ("citext", "'x'"), ("int4range", "'[1,2)'"), ("hstore", "'a=>1'"), ("point", "'(1,2)'"), ("timetz", "'10:00+02'"), ("int[]", "'{1}'"), ("tsvector", "'a'"),
    ("numeric", "1.5"), ("numeric(5,2)", "1.5"), ("numeric(5,2)", "'NaN'"), ("bit(3)", "B'101'"), ("bit(1)", "B'1'"), ("varbit(5)", "B'11'"), ("date", "'2024-02-29'"),
    ("time", "'01:02:03.5'"), ("timestamp", "'2024-01-02 03:04:05.678'"), ("timestamp(3)", "'2024-01-02 03:04:05.678'"),
    ("timestamptz", "'2024-01-02 03:04:05.678+02'"), ("timestamptz(3)", "'2024-01-02 03:04:05+00'"), ("interval", "'1 year 2 mons 3 days 04:05:06.789'"),
    ("uuid", "'9c5b94b1-35ad-49bb-b118-8e8fc24abf80'"), ("json", "'{\"a\": 1}'"), ("jsonb", "'{\"a\": 1}'"), ("xml", "'<a/>'"), ("float8", "'NaN'"), ("float4", "1.5"),
    ("float8", "-1e300"), ("varchar(5)", "'v'"), ("char(5)", "'c'"), ("bool", "true"), ("int8", "9223372036854775807"), ("int2", "-3"),
    ("int4", "'12'"), ("text", "''"),
)  # fmt: skip
_LITERAL_COLUMNS: Final = ", ".join(f"c{n} {kind} DEFAULT {text}" for n, (kind, text) in enumerate(_LITERALS))
_MADE: Final = (
    "CREATE EXTENSION IF NOT EXISTS hstore; CREATE EXTENSION IF NOT EXISTS citext; CREATE TYPE mood AS ENUM ('fine', 'bad');"
    "CREATE DOMAIN positive AS int CHECK (value > 0);"
    + "".join(
        f"CREATE FUNCTION made{n}() RETURNS {kind.partition('(')[0]} LANGUAGE sql AS 'SELECT NULL::{kind}';"
        for n, kind in enumerate(_MADE_TYPES)
    )
    + f"CREATE TABLE literal (id int PRIMARY KEY, {_LITERAL_COLUMNS}); INSERT INTO literal VALUES (1);"
    f"CREATE TABLE made (id int PRIMARY KEY, {_MADE_COLUMNS}); INSERT INTO made VALUES (1);"
    "CREATE SCHEMA other; CREATE FUNCTION other.count(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT 1';"
    """CREATE TABLE expressed (id int PRIMARY KEY, a int DEFAULT other.count(1, 2), b timestamp DEFAULT CURRENT_TIMESTAMP, c date DEFAULT CURRENT_DATE,
      d timestamp DEFAULT timezone('utc', now()), e text DEFAULT lower('X'), f timestamp DEFAULT now() + '1 day'::interval, g int DEFAULT COALESCE(1, 2),
      h int DEFAULT (-5), i int DEFAULT 5 * other.count(1, 2), j text DEFAULT 'a(b)', k text DEFAULT '(' || 'x)', l text DEFAULT CURRENT_USER, m time DEFAULT LOCALTIME,
      n timestamptz DEFAULT '2024-01-02 03:04:05+00', o int DEFAULT (random() * 5)::int, p text DEFAULT upper('a')::varchar, q text DEFAULT 'now()',
      r bool DEFAULT (NOT true), s int[] DEFAULT ARRAY[1, 2], t int[] DEFAULT '{1}', u date DEFAULT now()::date, v text DEFAULT NULL, w interval DEFAULT '1 day');
    INSERT INTO expressed VALUES (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      NULL, NULL, NULL, NULL);
    """
)
_COUNTED_ROWS = """INSERT INTO counted (word) VALUES ('a'); INSERT INTO bigly (word) VALUES ('b'); INSERT INTO identified (word) VALUES ('c');
INSERT INTO sequenced (at) VALUES ('2024-01-02');
"""
_ORDERED = """CREATE TABLE alpha (id int PRIMARY KEY);
CREATE TABLE beta (id int PRIMARY KEY);
CREATE TABLE gamma (id int PRIMARY KEY);
CREATE TABLE delta (id int PRIMARY KEY);
INSERT INTO alpha VALUES (1), (2);
INSERT INTO beta VALUES (1), (2);
INSERT INTO gamma VALUES (1), (2);
INSERT INTO delta VALUES (1), (2);
"""

SCENARIOS: Final = (
    Scenario("zoned", {}, _ZONED + _ZONED_ROW.format(id=1), (_ZONED_ROW.format(id=11),)),
    Scenario(
        "zoned_connect",
        {"time.precision.mode": "connect"},
        _ZONED + _ZONED_ROW.format(id=1),
        (_ZONED_ROW.format(id=11),),
    ),
    Scenario("counted", {}, _COUNTED + _COUNTED_ROWS, (_COUNTED_ROWS,)),
    Scenario("made", {"include.unknown.datatypes": "true"}, _MADE),
    Scenario(
        "made_texts",
        {
            "time.precision.mode": "isostring",
            "decimal.handling.mode": "string",
            "interval.handling.mode": "string",
            "binary.handling.mode": "hex",
            "hstore.handling.mode": "map",
        },
        _MADE,
        ("INSERT INTO literal VALUES (2); INSERT INTO literal (id, c13) VALUES (3, 'infinity'), (4, '-infinity')",),
    ),
    Scenario(
        "made_connect",
        {"time.precision.mode": "connect", "decimal.handling.mode": "double", "snapshot.mode": "initial_only"},
        _MADE,
    ),
    Scenario("ordered", {"table.include.list": r"public.gamma,public\.(delta|alpha),public.beta"}, _ORDERED),
    Scenario(
        "named_groups",
        {
            "table.include.list": r"public\.(?<kind>orders|clients)_(?<n>\d+)",
            "column.exclude.list": r"public\.(?<table>orders_\d)\.hidden",
            "message.key.columns": r"public\.(?<kind>clients)_1:word",
            "column.mask.with.3.chars": r"public\.(?<kind>clients)_1\.(?<column>hidden)",
        },
        _NAMED,
        (
            "INSERT INTO orders_1 VALUES (2, 'e', 'h'); INSERT INTO clients_1 VALUES (2, 'f', 'h')",
            "INSERT INTO others_1 VALUES (2, 'g', 'h'); UPDATE orders_2 SET word = 'i'",
        ),
    ),
    _kinds("default"),
    _kinds(
        "strings",
        decimal_handling_mode="string",
        time_precision_mode="connect",
        binary_handling_mode="hex",
        interval_handling_mode="string",
        hstore_handling_mode="map",
        include_unknown_datatypes="true",
    ),
    _kinds("doubles", decimal_handling_mode="double", time_precision_mode="isostring", binary_handling_mode="base64"),
    _kinds("micros", time_precision_mode="microseconds", binary_handling_mode="base64-url-safe"),
    _kinds("nanos", time_precision_mode="nanoseconds", column_propagate_source_type=".*"),
    _kinds("adaptive_micros", time_precision_mode="adaptive_time_microseconds", schema_name_adjustment_mode="avro"),
    Scenario("changes", {}, _CHANGES_BEFORE, _CHANGES),
    Scenario(
        "everything",
        {
            "skipped.operations": "none",
            "provide.transaction.metadata": "true",
            "tombstones.on.delete": "false",
            "publish.via.partition.root": "true",
            "message.prefix.include.list": "note",
            "publication.autocreate.mode": "filtered",
            "schema.refresh.mode": "columns_diff_exclude_unchanged_toast",
        },
        _CHANGES_BEFORE,
        _CHANGES,
    ),
    Scenario(
        "chosen",
        {
            "table.include.list": r"public\.(plain|pair|whole|later|parts_.*)",
            "column.exclude.list": r"public\.pair\.note",
            "message.key.columns": "public.whole:word",
            "publication.autocreate.mode": "filtered",
            "column.mask.with.5.chars": r"public\.later\.a",
            "column.truncate.to.2.chars": r"public\.plain\.word",
            "snapshot.mode": "no_data",
        },
        _CHANGES_BEFORE,
        _CHANGES,
    ),
    Scenario(
        "masks",
        {
            "column.mask.with.4.chars": r"public\.masked\.(code|fixed|j|u|m|n|big|required)",
            "column.mask.hash.SHA-256.with.salt.CzQMA0cB5K": r"public\.masked\.short",
            "column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K": r"public\.masked\.word",
            "column.truncate.to.2.chars": r"public\.cut\..*",
            "column.exclude.list": r"public\.masked\.hidden",
            "tombstones.on.delete": "false",
        },
        _MASKED_BEFORE,
        _MASKED,
    ),
    Scenario(
        "key_only_initial",
        {
            "snapshot.mode": "initial_only",
            "topic.delimiter": "_",
            "schema.name.adjustment.mode": "avro",
            "field.name.adjustment.mode": "avro",
        },
        _CHANGES_BEFORE,
    ),
)

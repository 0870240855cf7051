"""Statements run on a MariaDB server while a connector reads it; those of a transaction in ``after`` are between BEGIN
and COMMIT.
"""

from __future__ import annotations

from typing import Final

from tests.support.debezium.scenarios import Scenario

__all__ = ["MARIADB_SCENARIOS", "statements"]


def statements(text: str) -> list[str]:
    return [part for part in (p.strip() for p in text.split(";\n")) if part]


_TYPES = """
CREATE TABLE kinds (id bigint PRIMARY KEY, ti tinyint, ti1 tinyint(1) DEFAULT 1, tiu tinyint unsigned, si smallint, siu smallint unsigned,
  mi mediumint, miu mediumint unsigned, i int NOT NULL DEFAULT 7, iu int unsigned, iz int(5) unsigned zerofill, bi bigint DEFAULT 8,
  biu bigint unsigned, f float, f2 float(10,2), d double DEFAULT 1.5, n decimal(10,2) DEFAULT 1.25, n2 decimal(40,5),
  nn decimal(5) NOT NULL, c char(5), v varchar(10) DEFAULT 'x', vl varchar(10) CHARACTER SET latin1, tt tinytext, t text, mt mediumtext,
  lt longtext, b binary(4), vb varbinary(8), bl blob, b1 bit(1) DEFAULT b'1', b8 bit(8), b12 bit(12), da date, tm time, tm3 time(3),
  tm6 time(6), dt datetime, dt1 datetime(1), dt3 datetime(3) DEFAULT '2020-01-02 03:04:05.678', dt6 datetime(6), ts timestamp NULL, ts3 timestamp(3) NULL,
  ts6 timestamp(6) NULL DEFAULT NULL, y year, e enum('fine','bad') DEFAULT 'fine', s set('a','b','c'), j json, g geometry, p point,
  ls linestring, tsn timestamp NOT NULL DEFAULT current_timestamp, dn date NOT NULL DEFAULT '2020-01-01') CHARACTER SET utf8mb4;
"""
_ROW = """
INSERT INTO kinds VALUES ({id}, -128, 1, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, 42, -9223372036854775808,
  18446744073709551615, 1.5, 12.34, 2.25, 12345678.90, -12345678901234567890123456789012345.12345, 12345, 'c', 'tëxt😀', 'é', 'tiny', 'text',
  'medium', 'long', x'01020000', x'00ff', x'00ff10', b'1', b'10000001', b'100000000001', '2024-02-29', '23:59:59', '01:02:03.456',
  '-838:59:58.999999', '2024-01-02 03:04:05', '2024-01-02 03:04:05.6', '2024-01-02 03:04:05.678', '1969-12-31 23:59:58.000001', '2024-01-02 03:04:05',
  '2024-01-02 03:04:05.678', '2024-01-02 03:04:05.678901', 2024, 'bad', 'a,c', '{{"a": [1, 2.5, "x"]}}', ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))'),
  ST_GeomFromText('POINT(1.5 2.5)', 4326), ST_GeomFromText('LINESTRING(0 0,1 1)'), '2024-06-01 12:00:00', '2024-06-01');
"""
_EDGES = """
INSERT INTO kinds (id, nn, tsn) VALUES ({id}, 0, '2024-06-01 12:00:00');
INSERT INTO kinds (id, nn, n, n2, d, f, da, dt6, tm6, e, s, v, bl, b12, y, tsn, dn, biu) VALUES ({id} + 1, -99999, -0.01, 0.00001, -1e300, -1.1, '1000-01-01',
  '9999-12-31 23:59:59.999999', '838:59:59', 'fine', '', '', '', b'0', 1901, '1970-01-01 00:00:01', '9999-12-31', 9223372036854775807);
SET SESSION sql_mode = '';
INSERT INTO kinds (id, nn, da, dt, ts, tsn, dn, y) VALUES ({id} + 2, 1, '0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '2024-06-01 12:00:00', '0000-00-00', NULL);
SET SESSION sql_mode = DEFAULT;
"""
_AFTER = (*statements(_ROW.format(id=11)), *statements(_EDGES.format(id=12)))


def _kinds(name: str, **config: str) -> Scenario:
    properties = {key.replace("_", "."): value for key, value in config.items()}
    return Scenario(f"kinds_{name}", properties, _TYPES + _ROW.format(id=1) + _EDGES.format(id=2), _AFTER)


_CHANGES_BEFORE = """
CREATE TABLE plain (id int PRIMARY KEY, word text);
CREATE TABLE pair (a int, b varchar(20), note text, PRIMARY KEY (b, a));
CREATE TABLE keyless (word text, n int);
CREATE TABLE byindex (id int NOT NULL, code varchar(20) NOT NULL, word text, UNIQUE KEY byindex_code (code));
CREATE TABLE `Odd Näme` (`Id` int PRIMARY KEY, `a column` text);
CREATE TABLE later (id int PRIMARY KEY, a varchar(20));
INSERT INTO plain VALUES (1, 'one'), (2, NULL);
INSERT INTO pair VALUES (1, 'x', 'n');
INSERT INTO keyless VALUES ('k', 1);
INSERT INTO `Odd Näme` VALUES (1, 'odd');
"""
_CHANGES = statements("""
BEGIN;
INSERT INTO plain VALUES (3, 'three');
INSERT INTO pair VALUES (2, 'y', 'm');
UPDATE plain SET word = 'uno' WHERE id = 1;
COMMIT;
DELETE FROM plain WHERE id = 2;
UPDATE plain SET id = 30 WHERE id = 3;
BEGIN;
UPDATE pair SET note = NULL WHERE a = 1;
UPDATE pair SET a = 9 WHERE a = 2;
DELETE FROM pair WHERE a = 1;
COMMIT;
INSERT INTO keyless VALUES ('l', 2);
UPDATE keyless SET n = 3 WHERE word = 'l';
BEGIN;
INSERT INTO byindex VALUES (1, 'c1', 'w');
UPDATE byindex SET word = 'v';
UPDATE byindex SET code = 'c2';
DELETE FROM byindex;
COMMIT;
BEGIN;
INSERT INTO plain VALUES (98, 'rolled back');
ROLLBACK;
BEGIN;
INSERT INTO plain VALUES (40, 'before');
SAVEPOINT s;
INSERT INTO plain VALUES (41, 'no');
ROLLBACK TO s;
INSERT INTO plain VALUES (42, 'after');
COMMIT;
INSERT INTO `Odd Näme` VALUES (2, 'même');
INSERT INTO later VALUES (1, 'one');
ALTER TABLE later ADD b int DEFAULT 5;
INSERT INTO later VALUES (2, 'two', 2);
ALTER TABLE later CHANGE a c varchar(30) CHARACTER SET latin1 NOT NULL DEFAULT 'q' AFTER b;
INSERT INTO later VALUES (3, 3, 'thrée');
ALTER TABLE later DROP COLUMN c, ADD COLUMN (d datetime(3) DEFAULT '2020-01-01 00:00:00', e double precision NOT NULL DEFAULT 0.5);
INSERT INTO later VALUES (4, 4, NULL, 2);
ALTER TABLE later MODIFY b text FIRST;
INSERT INTO later VALUES ('five', 5, NULL, 2);
RENAME TABLE later TO even_later;
INSERT INTO even_later VALUES ('six', 6, NULL, 2);
CREATE TABLE new (id int AUTO_INCREMENT PRIMARY KEY, word text, ok boolean, k numeric(6,1) unsigned, j json, m enum('a','b') NOT NULL);
INSERT INTO new VALUES (1, 'n', true, 12345.6, '{"x": 1}', 'b');
CREATE UNIQUE INDEX keyless_n ON keyless (n);
CREATE TABLE copied LIKE plain;
INSERT INTO copied SELECT * FROM plain;
DROP TABLE copied;
INSERT INTO plain SELECT seq, concat('bulk ', seq) FROM seq_100_to_104;
TRUNCATE TABLE pair;
""")

_MASKED_BEFORE = """
CREATE TABLE masked (code varchar(12), word text, short varchar(20), fixed char(8), j json, m enum('fine', 'bad'), n int, hidden varchar(9),
  required text NOT NULL, PRIMARY KEY (code, hidden));
CREATE TABLE cut (code varchar(9) PRIMARY KEY, word text);
INSERT INTO masked VALUES ('abc', 'secret wörd', 'a short secret', 'fix', '{"a": 1}', 'fine', 1, 'h1', 'r'),
  ('abd', NULL, NULL, NULL, NULL, NULL, NULL, 'h2', '');
INSERT INTO cut VALUES ('one', 'wörds');
"""
_MASKED = statements("""
INSERT INTO masked VALUES ('abe', 'other', 'ü', 'x', '2', 'bad', 2, 'h3', 'r');
UPDATE masked SET word = NULL, short = NULL, fixed = NULL WHERE code = 'abe';
UPDATE masked SET hidden = 'h4' WHERE code = 'abe';
DELETE FROM masked WHERE code = 'abe';
INSERT INTO cut VALUES ('two', NULL);
UPDATE cut SET code = 'twofold' WHERE code = 'two';
""")

MARIADB_SCENARIOS: Final = (
    _kinds("default"),
    _kinds(
        "strings",
        decimal_handling_mode="string",
        time_precision_mode="connect",
        binary_handling_mode="hex",
        bigint_unsigned_handling_mode="precise",
    ),
    _kinds("doubles", decimal_handling_mode="double", time_precision_mode="isostring", binary_handling_mode="base64"),
    _kinds(
        "nanos",
        time_precision_mode="nanoseconds",
        column_propagate_source_type=".*",
        binary_handling_mode="base64-url-safe",
    ),
    _kinds("micros", time_precision_mode="microseconds", schema_name_adjustment_mode="avro"),
    Scenario("changes", {}, _CHANGES_BEFORE, tuple(_CHANGES)),
    Scenario(
        "everything",
        {
            "skipped.operations": "none",
            "provide.transaction.metadata": "true",
            "tombstones.on.delete": "false",
            "include.query": "true",
            "snapshot.locking.mode": "extended",
        },
        _CHANGES_BEFORE,
        tuple(_CHANGES),
    ),
    Scenario(
        "chosen",
        {
            "table.include.list": r"chosen\.(plain|pair|later|even_later)",
            "column.exclude.list": r"chosen\.pair\.note",
            "message.key.columns": "chosen.later:a",
            "column.mask.with.5.chars": r"chosen\.even_later\.b",
            "column.truncate.to.2.chars": r"chosen\.plain\.word",
            "snapshot.mode": "no_data",
            "schema.history.internal.store.only.captured.tables.ddl": "true",
            "include.schema.changes": "false",
        },
        _CHANGES_BEFORE,
        tuple(s for s in _CHANGES if "later" not in s),
    ),
    Scenario(
        "masks",
        {
            "column.mask.with.4.chars": r"masks\.masked\.(code|fixed|j|m|n|required)",
            "column.mask.hash.SHA-256.with.salt.CzQMA0cB5K": r"masks\.masked\.short",
            "column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K": r"masks\.masked\.word",
            "column.truncate.to.2.chars": r"masks\.cut\..*",
            "column.exclude.list": r"masks\.masked\.hidden",
            "tombstones.on.delete": "false",
            "include.schema.changes": "false",
        },
        _MASKED_BEFORE,
        tuple(_MASKED),
    ),
    Scenario(
        "only_initial",
        {"snapshot.mode": "initial_only", "topic.delimiter": "_", "field.name.adjustment.mode": "avro"},
        _CHANGES_BEFORE,
    ),
)

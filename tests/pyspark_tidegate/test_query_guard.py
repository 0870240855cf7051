"""A query of ``tidegate sql`` or the console may read topics, and nothing else of the process that runs it."""

from __future__ import annotations

import os

import pytest
from pyspark.errors import AnalysisException, ParseException

from connect.api import ConnectError
from connectors.spark.query_guard import SETTINGS, require_parsed, require_query

pytestmark = [
    pytest.mark.proof,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUERIES = (
    "SELECT a, count(*) c FROM t WHERE a > 1 GROUP BY a HAVING c > 1 ORDER BY 2 DESC LIMIT 3 OFFSET 1",
    "WITH w AS (SELECT * FROM t) SELECT * FROM w JOIN u USING (id) LEFT JOIN v ON w.a = v.b",
    "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "SELECT a, sum(b) OVER (PARTITION BY c ORDER BY d), x FROM t LATERAL VIEW explode(q) qq AS x WINDOW w AS (ORDER BY a)",
    "SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2))",
    "SELECT * FROM t UNPIVOT (v FOR k IN (a, b))",
    "SELECT * FROM range(10) UNION ALL VALUES (1), (2) INTERSECT SELECT 3 EXCEPT SELECT 4",
    "SELECT /*+ BROADCAST(t) */ DISTINCT * FROM t TABLESAMPLE (10 ROWS), LATERAL (SELECT * FROM b WHERE b.x = t.x)",
    "SELECT a IN (SELECT b FROM c), CASE WHEN a THEN 1 END, filter(b, x -> x > 1) FROM t WHERE EXISTS (SELECT 1 FROM d)",
    "FROM t |> WHERE a > 1 |> SELECT b",
    "TABLE t",
    "SELECT from_json(a, 'b INT'), date_trunc('day', b), coalesce(c, 'x'), json_tuple(d, 'e'), typeof(f), uuid() FROM t",
    "SELECT approx_count_distinct(a), percentile(b, 0.5), lag(c) OVER (ORDER BY d), window(e, '1 hour').start FROM t",
    "SELECT * FROM t, LATERAL explode(a), LATERAL variant_explode(parse_json(b))",
    "SELECT nowhere(a) FROM t",
)
REFUSED = (
    "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT * FROM t ORDER BY (SELECT java_method('a', 'b'))",
    "WITH w AS (SELECT `try_reflect`('a', 'b')) SELECT * FROM w",
    "SELECT a IN (SELECT filter(b, x -> Reflect('p', 'q') = x) FROM b) FROM c",
    "SELECT IDENTIFIER('reflect')('a', 'b')",
    "SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')",
    "SELECT xpath_string('<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>', 'a')",
    "SELECT XPath(a, 'b') FROM t",
    "SELECT from_xml(a, 'b INT', map('rowValidationXSDPath', '/etc/passwd')) FROM t",
    "SELECT schema_of_xml(a) FROM t",
    "SELECT from_protobuf(a, 'b', '/etc/passwd') FROM t",
    "SELECT input_file_name() FROM t",
    "SELECT * FROM python_worker_logs()",
    "SELECT TRANSFORM(a) USING 'cat' FROM t",
    "FROM t INSERT INTO x SELECT a",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1",
    "CREATE TABLE x USING csv LOCATION '/etc' AS SELECT 1",
    "CREATE TEMPORARY VIEW x USING text OPTIONS (path '/etc/passwd')",
    "SET spark.sql.runSQLOnFiles=true",
    "ADD JAR '/tmp/x.jar'",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "BEGIN SELECT 1; END",
    "EXPLAIN SELECT 1",
    "CACHE TABLE t",
    "CALL x.y()",
    "DROP TABLE t",
)


def test_queries_pass_and_all_else_is_refused(spark) -> None:
    for query in QUERIES:
        require_query(spark, query)
    for text in REFUSED:
        with pytest.raises(ConnectError, match="not taken here"):
            require_query(spark, text)
    with pytest.raises(ParseException, match="SELEC"):
        require_query(spark, "SELEC 1")
    with pytest.raises(ConnectError, match="characters"):
        require_query(spark, f"SELECT '{'x' * 100_000}'")


def test_before_spark_starts_the_same_is_refused_and_the_names_of_tables_are_known(spark) -> None:
    assert [name for query in QUERIES for name in require_parsed(spark._jvm, query) if name not in "tuvbcd"] == []
    for text in REFUSED:
        with pytest.raises(ConnectError, match="not taken here"):
            require_parsed(spark._jvm, text)
    query = (
        "WITH w AS (SELECT * FROM `a-b`), v AS (TABLE w) SELECT * FROM W JOIN shop.sales, LATERAL (SELECT * FROM c) "
        "WHERE x IN (SELECT trim(BOTH FROM y) FROM d WHERE EXISTS (TABLE e))"
    )
    assert sorted(require_parsed(spark._jvm, query)) == ["a-b", "c", "d", "e"]
    with pytest.raises(ParseException, match="SELEC"):
        require_parsed(spark._jvm, "SELEC 1")


def test_the_session_reads_no_file_and_no_environment(spark, tmp_path) -> None:
    (tmp_path / "secret.txt").write_text("secret\n")
    for setting, value in SETTINGS.items():
        spark.conf.set(setting, value)
    try:
        with pytest.raises(AnalysisException):
            spark.sql(f"SELECT * FROM text.`{tmp_path}/secret.txt`").collect()
        assert spark.sql("SELECT '${env:HOME}' AS home").collect()[0].home == "${env:HOME}" != os.environ["HOME"]
    finally:
        for setting in SETTINGS:
            spark.conf.unset(setting)

"""Lets queries read topics and do nothing else: no command, no script, no call into Java, no file, no variable of the environment.

In the console the author of a query is not the owner of the process that runs it. The check reads the plan that Spark's own parser
makes, so no second parser can read the text in another way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from connect.api import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "require_parsed", "require_query"]

SETTINGS: Final = {
    "spark.sql.runSQLOnFiles": "false",  # SELECT * FROM csv.`/etc/passwd`
    "spark.sql.variable.substitute": "false",  # ${env:PASSWORD}
}
"""Settings of the session, without which the look at the plan is not enough."""
_MOST_CHARACTERS: Final = 100_000
_PLANS: Final = frozenset(
    {
        "Aggregate",
        "Distinct",
        "Except",
        "Expand",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "OneRowRelation",
        "PipeOperator",
        "Pivot",
        "Project",
        "Sample",
        "Sort",
        "SubqueryAlias",
        "Tail",
        "Union",
        "UnionLoop",
        "Unpivot",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTVFAliases",
        "UnresolvedTableValuedFunction",
        "UnresolvedWith",
        "Window",
        "WithWindowDefinition",
    }
)
"""The nodes of a query's plan, by the names of their classes."""
_GROUPS: Final = frozenset(
    {
        "agg_funcs",
        "array_funcs",
        "bitwise_funcs",
        "collection_funcs",
        "conditional_funcs",
        "conversion_funcs",
        "csv_funcs",
        "datetime_funcs",
        "generator_funcs",
        "hash_funcs",
        "json_funcs",
        "lambda_funcs",
        "map_funcs",
        "math_funcs",
        "predicate_funcs",
        "st_funcs",
        "string_funcs",
        "struct_funcs",
        "url_funcs",
        "variant_funcs",
        "window_funcs",
    }
)
"""Groups of Spark's functions that work on values alone. Those of XML open the files and addresses that a document names."""
_MORE_FUNCTIONS: Final = re.compile(
    "(try_)?aes_.*|approx_top_k_estimate|assert_true|bitmap_.*|current_.*|hll_.*|kll_.*|monotonically_increasing_id|raise_error"
    "|session_user|spark_partition_id|theta_.*|typeof|user|uuid|version"
)
"""Of the group of all others."""
_TABLE_FUNCTIONS: Final = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "range",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    }
)
_REFUSED_EXPRESSIONS: Final = frozenset({"ExpressionWithUnresolvedIdentifier"})
"""IDENTIFIER('...')(...) calls a function that nobody has seen."""


def require_query(spark: SparkSession, sql: str) -> None:
    """Raises ConnectError for what is no query, and pyspark's ParseException for what is no SQL."""
    session: Any = spark
    state = session._jsparkSession.sessionState()
    _require_length(sql)
    _Look(session._jvm, state.functionRegistry()).through(state.sqlParser().parsePlan(sql))


def require_parsed(jvm: Any, sql: str) -> list[str]:
    """As ``require_query``, in a JVM with Spark's classes and no session. Returns the names in the query that are tables, without those
    with dots and those that a common table expression of the query has."""
    _require_length(sql)
    look = _Look(jvm, jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin())
    look.through(jvm.org.apache.spark.sql.execution.SparkSqlParser().parsePlan(sql))
    return [name for name in look.tables if name.lower() not in look.expressions]


def _require_length(sql: str) -> None:
    if len(sql) > _MOST_CHARACTERS:
        raise ConnectError(f"the query has {len(sql):,} characters; at most {_MOST_CHARACTERS:,} are taken")


class _Look:
    """Goes through a plan without recursion: a query may be nested as deep as its parser goes.

    ``tables`` are the names of relations that have one part, and ``expressions`` those of common table expressions, in lower case.
    """

    def __init__(self, jvm: Any, functions: Any) -> None:
        self._has_plan = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.expressions.PlanExpression")
        self._registry = functions
        self._identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
        self.tables: list[str] = []
        self.expressions: set[str] = set()

    def through(self, plan: Any) -> None:
        """Raises ConnectError for what is more than a query."""
        plans: list[Any] = [plan]
        expressions: list[Any] = []
        while plans or expressions:
            if plans:
                node = plans.pop()
                self._require_plan(node)
                plans += [*_members(node.children()), *_members(node.innerChildren())]
                expressions += _members(node.expressions())
                continue
            node = expressions.pop()
            name = _name(node)
            if name == "UnresolvedFunction":
                self._require_function(node.nameParts().last())
            if name in _REFUSED_EXPRESSIONS:
                raise ConnectError("IDENTIFIER(...) is not taken here as a function: write the function's name")
            expressions += _members(node.children())
            if self._has_plan.isInstance(node):
                plans.append(node.plan())

    def _require_plan(self, node: Any) -> None:
        name = _name(node)
        if name not in _PLANS:
            raise ConnectError(f"this is more than a query: {name} is not taken here, a SELECT over topics is")
        if name == "UnresolvedRelation" and node.multipartIdentifier().size() == 1:
            self.tables.append(str(node.multipartIdentifier().head()))
        if name == "UnresolvedWith":
            self.expressions |= {str(pair._1()).lower() for pair in _members(node.cteRelations())}
        if name == "UnresolvedTableValuedFunction" and node.name().last().lower() not in _TABLE_FUNCTIONS:
            raise ConnectError(f"the function {node.name().last()} is not taken here as a table")

    def _require_function(self, name: str) -> None:
        """Unknown functions are for Spark to name."""
        known = self._registry.lookupFunction(self._identifier(name.lower()))
        if known.isEmpty() or known.get().getGroup() in _GROUPS or _MORE_FUNCTIONS.fullmatch(name.lower()):
            return
        raise ConnectError(f"the function {name} is not taken here: it does more than work on values")


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName()).rstrip("$")


def _members(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))

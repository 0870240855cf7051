"""Lets queries read topics and do nothing else: no command, no script, no call into Java, no file, no variable of the environment.

Who writes a query may be somebody else than who owns the process, as in the console. The plan is looked at as Spark's own parser
made it, so that no other reading of the text decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from connect.api import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "require_query"]

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
_REFUSED_FUNCTIONS: Final = frozenset({"java_method", "reflect", "try_reflect"})
_REFUSED_EXPRESSIONS: Final = frozenset({"ExpressionWithUnresolvedIdentifier"})
"""IDENTIFIER('...')(...) calls a function that nobody has seen."""


def require_query(spark: SparkSession, sql: str) -> None:
    """Raises ConnectError for what is no query, and pyspark's ParseException for what is no SQL."""
    if len(sql) > _MOST_CHARACTERS:
        raise ConnectError(f"the query has {len(sql):,} characters; at most {_MOST_CHARACTERS:,} are taken")
    session: Any = spark
    plan = session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    class_ = session._jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.expressions.PlanExpression")
    _look(plan, class_)


def _look(plan: Any, has_plan: Any) -> None:
    """Without recursion: a query may be nested as deep as its parser goes."""
    plans: list[Any] = [plan]
    expressions: list[Any] = []
    while plans or expressions:
        if plans:
            node = plans.pop()
            name = _name(node)
            if name not in _PLANS:
                raise ConnectError(f"this is more than a query: {name} is not taken here, a SELECT over topics is")
            plans += [*_members(node.children()), *_members(node.innerChildren())]
            expressions += _members(node.expressions())
            continue
        node = expressions.pop()
        name = _name(node)
        if name == "UnresolvedFunction":
            function = node.nameParts().last()
            if function.lower() in _REFUSED_FUNCTIONS:
                raise ConnectError(f"the function {function} is not taken here: it calls into Java")
        if name in _REFUSED_EXPRESSIONS:
            raise ConnectError("IDENTIFIER(...) is not taken here as a function: write the function's name")
        expressions += _members(node.children())
        if has_plan.isInstance(node):
            plans.append(node.plan())


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName()).rstrip("$")


def _members(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))

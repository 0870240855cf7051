"""The graph of the lineage, its ways and columns, and the picture of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from openlineage.client.event_v2 import JobEvent

from tidegate.clients.lineage import Flow, Lineage, Node, open_lineage_events
from tidegate.console.graph import drawn
from tidegate.kit.datasets import Dataset

SHOP = Flow(
    "in", True, "orders", Dataset("postgres://db:5432", "shop.public.orders"), [("id", "id"), ("amount", "total")]
)
COPY = Flow("out", False, "orders", Dataset("s3://lake", "orders"), [("total", "total")])
OTHER = Flow("in", True, "clicks", Dataset("postgres://db:5432", "shop.public.clicks"))
TOPICS = Flow("job", False, "orders", Dataset("kafka://a:1", "totals"))


def told() -> Lineage:
    return Lineage("kafka://a:1", [SHOP, COPY, OTHER, TOPICS], [("orders", Node("trigger", "ship"))])


def test_what_a_node_is_connected_to():
    names = [node.id for node in told().around(told().find("s3://lake/orders")).nodes]
    assert names == [
        "connector:in",
        "connector:out",
        "dataset:postgres://db:5432/shop.public.orders",
        "dataset:s3://lake/orders",
        "topic:orders",
    ]
    assert [node.id for node in told().around([Node("topic", "clicks")]).nodes] == [
        "connector:in",
        "dataset:postgres://db:5432/shop.public.clicks",
        "topic:clicks",
    ], "not what else the connector moves"
    assert len(told().around([Node("connector", "in")]).nodes) == len(told().nodes)
    assert {node.id for node in told().around(told().find("topic:orders")).nodes} >= {"trigger:ship", "topic:totals"}
    assert told().find("orders") == [Node("topic", "orders")] and told().find("nothing") == []


def test_steps_are_told_along_their_ways():
    part = told().around([Node("topic", "orders")])
    assert [f"{start.name} > {end.name}" for start, end in part.edges] == [
        "postgres://db:5432/shop.public.orders > in",
        "in > orders",
        "orders > job",
        "job > totals",
        "orders > out",
        "out > s3://lake/orders",
        "orders > ship",
    ]
    circle = Lineage("k", [Flow("a", True, "t", Dataset("k", "u")), Flow("b", True, "u", Dataset("k", "t"))])
    assert [end.name for _, end in circle.edges] == ["t", "b", "u", "a"]


def test_a_column_is_followed_over_connectors():
    orders, table = Node("topic", "orders"), Node("dataset", "postgres://db:5432/shop.public.orders")
    lake = Node("dataset", "s3://lake/orders")
    assert told().trace((table, "amount")) == [
        ((table, "amount"), (orders, "total"), "in"),
        ((orders, "total"), (lake, "total"), "out"),
    ]
    assert told().columns(orders) == [("id", [(table, "id")], []), ("total", [(table, "amount")], [(lake, "total")])]


def test_events_have_the_fields_of_open_lineage():
    events = {event["job"]["name"]: event for event in open_lineage_events(told())}
    shop = events["in"]
    assert set(shop) == {field.name.strip("_") for field in JobEvent.__attrs_attrs__}
    assert {entry["name"] for entry in shop["inputs"]} == {"shop.public.orders", "shop.public.clicks"}
    fields = shop["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert fields["total"]["inputFields"] == [
        {"namespace": "postgres://db:5432", "name": "shop.public.orders", "field": "amount"}
    ]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_every_node_has_a_free_spot_also_in_circles(edges):
    picture = drawn(edges)
    spots = [(placed.x, placed.y) for placed in picture.nodes]
    assert {placed.node for placed in picture.nodes} == {node for edge in edges for node in edge}
    assert len(set(spots)) == len(spots)
    assert all(x + picture.node_width <= picture.width and y + picture.node_height <= picture.height for x, y in spots)

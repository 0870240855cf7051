"""Metadata and rule sets: any JSON is accepted or refused, and merging follows the documentation."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidBody, InvalidRuleSet
from registry.model import contracts

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text("abc", min_size=1, max_size=2)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.dictionaries(TEXT, st.lists(TEXT, max_size=3), max_size=3),
        "properties": st.dictionaries(TEXT | st.just("confluent:version"), TEXT | JSON, max_size=3),
        "sensitive": st.lists(TEXT, max_size=3),
        "other": JSON,
    },
)
RULE = st.fixed_dictionaries(
    {"name": TEXT, "type": TEXT},
    optional={
        "kind": st.sampled_from(["TRANSFORM", "CONDITION"]),
        "mode": st.sampled_from(["WRITE", "READ", "WRITEREAD", "UPGRADE"]),
        "params": st.dictionaries(TEXT, TEXT, max_size=2),
        "tags": st.lists(TEXT, max_size=2),
        "disabled": st.booleans(),
        "expr": TEXT | JSON,
    },
)
RULES = st.fixed_dictionaries(
    {}, optional={name: st.lists(RULE, max_size=3) for name in ("domainRules", "encodingRules")}
)


def read(reader: Any, value: object) -> str | None:
    try:
        text: str | None = reader(value)
    except InvalidBody:
        return None
    return text


@settings(max_examples=60, deadline=None)
@given(METADATA | JSON, METADATA | JSON)
def test_metadata_is_read_to_one_text_or_refused(document: Any, other: Any) -> None:
    first, second = read(contracts.read_metadata, document), read(contracts.read_metadata, other)
    if first is None:
        return
    assert contracts.read_metadata(json.loads(first)) == first, "reading it again changes nothing"
    merged = contracts.merge_metadata(first, second)
    assert merged is not None
    assert contracts.merge_metadata(merged, second) == merged
    assert contracts.merge_metadata(first, None) == contracts.merge_metadata(None, first) == first
    marked = contracts.with_confluent_version(first, 7)
    assert contracts.confluent_version(marked) == 7
    assert contracts.without_confluent_version(marked) == contracts.without_confluent_version(first)
    "".join(contracts.hashed(first, None))


@settings(max_examples=60, deadline=None)
@given(RULES | JSON, RULES)
def test_rule_sets_are_read_to_one_text_or_refused(rules: Any, other: Any) -> None:
    first, second = read(contracts.read_rule_set, rules), read(contracts.read_rule_set, other)
    if first is None:
        return
    assert contracts.read_rule_set(json.loads(first)) == first
    merged = contracts.merge_rule_sets(first, second)
    assert merged is not None
    for text in (first, merged):
        try:
            contracts.check_rules(text)
        except InvalidRuleSet:
            continue
        "".join(contracts.hashed(None, text))
    names = [rule["name"] for kind in ("domainRules", "encodingRules") for rule in json.loads(merged).get(kind, ())]
    left = contracts.without_rules(merged, names)
    assert left is not None
    assert not any(json.loads(left).get(kind) for kind in ("domainRules", "encodingRules"))

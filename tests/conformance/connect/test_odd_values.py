"""Keys with unusual values get errors in the same cases as from Kafka Connect and Debezium, except for those in the
table of differences.

One value in eight in everyday runs, and all of them in the long proofs.
"""

from __future__ import annotations

import pytest

from tests.support.odd_values import cases, declared, differences, sampled, table, unlisted

pytestmark = pytest.mark.servers


def test_odd_values_are_judged_as_by_the_originals(judges):
    theirs, ours = judges
    chosen = sampled(cases(theirs, ours), 8)
    assert len(chosen) > 1000
    left = unlisted(differences(theirs, ours, chosen), table())
    assert not left, (
        f"{len(left)} of {len(chosen)}; docs/reference/connect-differences.md lists what may differ\n"
        + "\n".join(map(str, left))
    )


@pytest.fixture(scope="module")
def definitions(judges):
    """The definitions of keys by plugin and key, on the original and on ours."""
    return [{(plugin, key): definition for plugin, key, definition in declared(url)} for url in judges]


def test_types_and_defaults_of_keys_are_the_originals(definitions):
    theirs, ours = definitions
    both = set(theirs) & set(ours)
    assert len(both) > 300
    wrong = {
        key_name: (theirs[key_name]["type"], ours[key_name]["type"])
        for key_name in both
        if theirs[key_name]["type"] != ours[key_name]["type"]
    }
    # A name of a table that is a list of one, and a list of expressions that is a text.
    assert set(wrong) == {("PostgresConnector", "signal.data.collection"), ("MariaDbConnector", "signal.data.collection"),
                          ("MariaDbConnector", "gtid.source.excludes")}, wrong  # fmt: skip
    other = {
        key
        for plugin, key in both
        if (theirs[plugin, key]["default_value"] or "") != (ours[plugin, key]["default_value"] or "")
    }
    assert other == {
        "plugin.name",  # decoderbufs needs a module of the server
        "database.ssl.mode",  # encrypted where the server can
        "retriable.restart.connector.wait.ms",
        "executor.shutdown.timeout.ms",
        "custom.sanitize.pattern",
        "sourceinfo.struct.maker",
        "config.properties.exclude",  # the same, written as expressions
        "table.fields.additional.error.on.missing",
    }


def test_importances_of_keys_are_the_originals(definitions):
    theirs, ours = ({key: definition["importance"] for key, definition in of_one.items()} for of_one in definitions)
    assert {key: (theirs[key], ours[key]) for key in theirs.keys() & ours if theirs[key] != ours[key]} == {}


@pytest.mark.proof
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_table_of_differences_is_exact(judges, record_property):
    """No difference that it does not have, and nothing in it that is not so."""
    theirs, ours = judges
    chosen, rows = list(cases(theirs, ours)), table()
    left = unlisted(differences(theirs, ours, chosen), rows)
    stale = [f"{row.plugins} {row.keys} {row.refused_by}: {(row.values or {'any'}) - row.seen}" for row in rows
             if not row.seen or (row.values is not None and row.seen != row.values)]  # fmt: skip
    record_property("values", len(chosen))
    record_property("rows", len(rows))
    assert not left, f"{len(left)} of {len(chosen)}\n" + "\n".join(map(str, left))
    assert not stale, "no longer so:\n" + "\n".join(stale)

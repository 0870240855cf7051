"""The triggers of the bank: events that come again lead to the same alerts, and the order of the tables does not matter."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from events.triggers import TriggerContext, TriggerEvent
from events.triggers.project import load
from tests.support.pages import ROOT

PAYMENTS = [(1, "anna", 250.0), (2, "ben", 20.0), (3, "anna", 120.0), (4, "nobody", 900.0)]
THRESHOLDS = [(5, "anna", 200.0), (6, "ben", 10.0), (7, "anna", 100.0), (8, "anna", 90.0)]


class Bank:
    """The triggers over a database of their own."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(ROOT / "examples/bank-alerts/triggers", folder / "triggers")
        project = load(folder / "triggers", plugins=False)
        assert project.problems == {}
        self._triggers = project.triggers

    def payments(self, *rows: tuple[int, str, float]) -> list[Any]:
        fields = {"Customer__c": 1, "Amount__c": 2}
        return self._call("watch_payments", "Payment__ChangeEvent", rows, fields, 0, {"Paid_At__c": 0})

    def thresholds(self, *rows: tuple[int, str, float]) -> list[Any]:
        return self._call("watch_thresholds", "Threshold__ChangeEvent", rows, {"Amount__c": 2}, 1, {})

    def _call(
        self, name: str, event: str, rows: Any, fields: dict[str, int], key: int, more: dict[str, Any]
    ) -> list[Any]:
        events = []
        for row in rows:
            header = {"changeType": "CREATE", "recordIds": [str(row[key])]}
            values = {field: row[column] for field, column in fields.items()}
            events.append(TriggerEvent(event, row[0], "", {"ChangeEventHeader": header, **values, **more}))
        context = TriggerContext(self._triggers[name], events, 0)
        self._triggers[name].function(events, context)
        alerts = [output.fields for output in context.outputs if output.fields is not None]
        return [(alert["Payment__c"], alert["Threshold__c"], alert["Retroactive__c"]) for alert in alerts]


def test_events_that_come_again_lead_to_the_same_alerts(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    assert bank.thresholds(THRESHOLDS[0]) == []
    seen = bank.payments(*PAYMENTS[:2])
    assert seen == [("1", 200.0, False)]
    assert bank.payments(*PAYMENTS) == seen, "as after a process that died before its position was written"
    lowered = bank.thresholds(*THRESHOLDS[1:])
    assert lowered == [("2", 10.0, True), ("3", 100.0, True)]
    assert bank.thresholds(*THRESHOLDS[1:]) == lowered


@pytest.mark.parametrize("order", [("payments", "thresholds"), ("thresholds", "payments")], ids="-then-".join)
def test_alerts_are_the_same_whichever_table_comes_first(order: tuple[str, str], tmp_path: Path) -> None:
    bank, rows = Bank(tmp_path), {"payments": PAYMENTS, "thresholds": THRESHOLDS}
    alerts = [alert for table in order for alert in getattr(bank, table)(*rows[table])]
    assert sorted(payment for payment, _, _ in alerts) == ["1", "2", "3"]
    assert {retroactive for _, _, retroactive in alerts} == {order[0] == "payments"}

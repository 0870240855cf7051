"""The trigger of the order system is killed at each of its steps: no event is lost, and none counts twice."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/order-system/triggers/restock.py"
PROGRAM = """
import importlib.util, json, os, sqlite3, sys
from events.triggers import TriggerContext, TriggerEvent

path, die_at = sys.argv[1], int(sys.argv[2])

class Dying(sqlite3.Connection):
    left = die_at

    def _step(self):
        if Dying.left == 0:
            os._exit(9)
        Dying.left -= 1

    def execute(self, *given):
        self._step()
        return super().execute(*given)

    def commit(self):
        self._step()
        super().commit()
        self._step()

connect = sqlite3.connect
sqlite3.connect = lambda path: connect(path, factory=Dying)
spec = importlib.util.spec_from_file_location("restock", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
orders = [("chair", 6), ("lamp", 1), ("chair", 7)]
events = [
    TriggerEvent("Order_Shipped__e", n, f"uuid-{n}", {"Product__c": product, "Quantity__c": float(quantity)})
    for n, (product, quantity) in enumerate(orders)
]
context = TriggerContext(None, events, 0)
module.restock(events, context)
print(json.dumps([output.fields for output in context.outputs]))
"""
RESTOCKED = [{"Product__c": "chair", "Quantity__c": 6}, {"Product__c": "chair", "Quantity__c": 7}]


def called(script: Path, die_at: int) -> Any:
    """The events that one call of the trigger published; None where it died."""
    command = [sys.executable, "-c", PROGRAM, str(script), str(die_at)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 9), done.stderr
    return json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.parametrize("published", [False, True])
def test_a_call_that_dies_at_any_step_is_repeated_without_loss(tmp_path: Path, published: bool) -> None:
    """With ``published`` the call returns, and the process dies before its output is in the log."""
    for step in range(100):
        folder = tmp_path / str(step) / "triggers"
        folder.mkdir(parents=True)
        script = Path(shutil.copy(EXAMPLE, folder))
        first = called(script, -1 if published else step)
        assert first in (None, RESTOCKED)
        assert called(script, -1) == RESTOCKED
        with closing(sqlite3.connect(folder.parent / "stock.db")) as stock:
            assert dict(stock.execute("SELECT product, quantity FROM shelf")) == {"chair": 10, "lamp": 9}
        if first is not None:
            assert published or step > 10
            break

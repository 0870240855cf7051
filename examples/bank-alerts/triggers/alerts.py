"""Joins payments with the thresholds of their customers, whichever comes first, and publishes an alert for each payment
above its threshold.

alerts.db holds the newest threshold of each customer beside the payments. A trigger's position and what it publishes are
one transaction of the log; alerts.db cannot be part of that. So each alert is kept with the event that caused it: if the
process dies between the two commits, the event comes again, changes nothing, and leads to the same alerts.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from events.triggers import RetryableException, trigger

DATABASE = Path(__file__).parent.parent / "alerts.db"
TABLES = """
CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, customer TEXT, amount REAL, paid_at INTEGER);
CREATE TABLE IF NOT EXISTS thresholds (customer TEXT PRIMARY KEY, amount REAL);
CREATE TABLE IF NOT EXISTS alerts (payment TEXT PRIMARY KEY, threshold REAL, cause TEXT);
CREATE INDEX IF NOT EXISTS payments_of_customer ON payments (customer);
CREATE INDEX IF NOT EXISTS alerts_of_cause ON alerts (cause);
"""


@trigger("Payment__ChangeEvent", replay="earliest")
def watch_payments(events, context):
    with database() as db:
        for event in events:
            if event["ChangeEventHeader"]["changeType"] != "CREATE":
                continue
            (number,) = event["ChangeEventHeader"]["recordIds"]
            row = (number, event["Customer__c"], event["Amount__c"], event["Paid_At__c"])
            db.execute("INSERT OR IGNORE INTO payments VALUES (?, ?, ?, ?)", row)
            alert(db, context, event, "id", number)


@trigger("Threshold__ChangeEvent", replay="earliest")
def watch_thresholds(events, context):
    with database() as db:
        for event in events:
            (customer,) = event["ChangeEventHeader"]["recordIds"]
            db.execute("INSERT OR REPLACE INTO thresholds VALUES (?, ?)", (customer, event["Amount__c"]))
            alert(db, context, event, "customer", customer)  # retroactively, for what was paid before


def alert(db, context, event, column, value):
    """Publish an alert for payments with this value above the threshold, each once."""
    cause = f"{event.name} {event.replay_id}"
    db.execute(
        "INSERT OR IGNORE INTO alerts SELECT id, thresholds.amount, ? FROM payments JOIN thresholds USING (customer) "
        f"WHERE payments.{column} = ? AND payments.amount > thresholds.amount",
        (cause, value),
    )
    for number, customer, amount, paid_at, threshold in db.execute(
        "SELECT id, customer, amount, paid_at, threshold FROM alerts JOIN payments ON id = payment WHERE cause = ?",
        (cause,),
    ):
        fields = {
            "Payment__c": number,
            "Customer__c": customer,
            "Amount__c": amount,
            "Threshold__c": threshold,
            "Retroactive__c": event.name == "Threshold__ChangeEvent",
            "Paid_At__c": paid_at,
            "Subject__c": f"{customer} paid {amount:.2f}, which is above {threshold:.2f}",
        }
        context.publish("Alert__e", fields)


class database:  # noqa: N801 - used like a function
    """alerts.db in one transaction; while another process writes, the events come again."""

    def __enter__(self):
        self._db = sqlite3.connect(DATABASE, timeout=10)
        self._db.executescript(TABLES)
        return self._db

    def __exit__(self, kind, error, traceback):
        with closing(self._db):
            if kind is None:
                self._db.commit()
        if isinstance(error, sqlite3.OperationalError):
            raise RetryableException(f"{DATABASE.name} is busy: {error}") from error

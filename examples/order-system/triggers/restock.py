"""The warehouse: takes what was shipped off the shelf, and restocks what has run low."""

import sqlite3
from pathlib import Path

from events.triggers import RetryableException, trigger

STOCK = Path(__file__).parent.parent / "stock.db"
FULL, LOW = 10, 5


@trigger("Order_Shipped__e", batch_size=200, replay="earliest")
def restock(events, context):
    stock = sqlite3.connect(STOCK)
    try:
        stock.execute("CREATE TABLE IF NOT EXISTS shelf (product TEXT PRIMARY KEY, quantity INTEGER)")
        stock.execute("CREATE TABLE IF NOT EXISTS done (event TEXT PRIMARY KEY, ordered INTEGER)")
        for event in events:
            # The shelf is committed here, and what is published with the trigger's position a moment later. A process that
            # dies between the two is given these events again: the shelf stays as it is, and what it led to is published again.
            product = event["Product__c"]
            done = stock.execute("SELECT ordered FROM done WHERE event = ?", (event.uuid,)).fetchone()
            ordered = done[0] if done else ship(stock, product, int(event["Quantity__c"]))
            stock.execute("INSERT OR IGNORE INTO done VALUES (?, ?)", (event.uuid, ordered))
            if ordered:
                context.publish("Restocked__e", {"Product__c": product, "Quantity__c": ordered})
        stock.commit()
    except sqlite3.OperationalError as error:
        raise RetryableException(f"the stock is busy: {error}") from error
    finally:
        stock.close()


def ship(stock, product, quantity):
    """Take a product off the shelf; how many were ordered to fill it up again."""
    stock.execute("INSERT OR IGNORE INTO shelf VALUES (?, ?)", (product, FULL))
    taken = "UPDATE shelf SET quantity = quantity - ? WHERE product = ? RETURNING quantity"
    (left,) = stock.execute(taken, (quantity, product)).fetchone()
    if left >= LOW:
        return 0
    stock.execute("UPDATE shelf SET quantity = ? WHERE product = ?", (FULL, product))
    return FULL - left

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
        stock.execute("CREATE TABLE IF NOT EXISTS done (event TEXT PRIMARY KEY)")
        for event in events:
            # A call may be repeated when this process dies in the middle: what is done already is known by its uuid.
            if not stock.execute("INSERT OR IGNORE INTO done VALUES (?)", (event.uuid,)).rowcount:
                continue
            product = event["Product__c"]
            stock.execute("INSERT OR IGNORE INTO shelf VALUES (?, ?)", (product, FULL))
            taken = "UPDATE shelf SET quantity = quantity - ? WHERE product = ? RETURNING quantity"
            (left,) = stock.execute(taken, (int(event["Quantity__c"]), product)).fetchone()
            if left < LOW:
                stock.execute("UPDATE shelf SET quantity = ? WHERE product = ?", (FULL, product))
                context.publish("Restocked__e", {"Product__c": product, "Quantity__c": FULL - left})
        stock.commit()
    except sqlite3.OperationalError as error:
        raise RetryableException(f"the stock is busy: {error}") from error
    finally:
        stock.close()

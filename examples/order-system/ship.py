"""The order system: ships orders and publishes Order_Shipped__e for each. Arguments: the first order's number and how many."""

import sys

import requests

EVENTS = "http://127.0.0.1:8090"
PRODUCTS = ("lamp", "chair")

login = requests.post(
    f"{EVENTS}/services/oauth2/token",
    data={"grant_type": "client_credentials", "client_id": "tidegate", "client_secret": "tidegate-dev"},
    timeout=30,
)
login.raise_for_status()
first, count = int(sys.argv[1]), int(sys.argv[2])
orders = [
    {
        "attributes": {"type": "Order_Shipped__e"},
        "Order_Number__c": f"A-{number}",
        "Product__c": PRODUCTS[number % 2],
        "Quantity__c": 2,
    }
    for number in range(first, first + count)
]
answer = requests.post(
    f"{EVENTS}/services/data/v60.0/composite/sobjects",
    json={"records": orders},
    headers={"Authorization": f"Bearer {login.json()['access_token']}"},
    timeout=30,
)
answer.raise_for_status()
print(f"shipped {sum(result['success'] for result in answer.json())} orders")

"""Works with simple-salesforce, as a program of a firm would.

``accounts.py request 200`` publishes requests for Accounts, always the same ones; they are also lines of requests.jsonl.
``accounts.py rename C-1 NAME`` and ``accounts.py close C-2`` change Accounts in the org, ``accounts.py show C-1`` prints one.
"""

import json
import os
import random
import sys
from pathlib import Path

from simple_salesforce import Salesforce, SalesforceLogin

os.environ.setdefault("REQUESTS_CA_BUNDLE", "tidegate-data/events/tls/ca.pem")


def request(count):
    """200 events in each HTTP request; publishing is up to the events service, or to a real org."""
    session_id, instance = SalesforceLogin(
        username="developer@tidegate.local",
        password="tidegate-dev",
        security_token="",
        scratch_url="https://127.0.0.1:8443",
    )
    events = Salesforce(session_id=session_id, instance=instance)
    chance = random.Random(11)
    wanted = [
        {
            "Customer_Number__c": f"C-{number}",
            "Name__c": f"{chance.choice(('Acme', 'Umbrella', 'Globex'))} {number}",
            "Country__c": chance.choice(("DE", "FR", "SE", None)),
            "Employees__c": chance.choice((3, 12, 99, 100, 2500)),
        }
        for number in range(1, count + 1)
    ]
    published = 0
    for first in range(0, count, 200):
        records = [{"attributes": {"type": "Account_Requested__e"}, **event} for event in wanted[first : first + 200]]
        results = events.restful("composite/sobjects", method="POST", data=json.dumps({"records": records}))
        published += sum(result["success"] for result in results)
    Path("requests.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in wanted))
    print(f"published {published} requests")


def org():
    return Salesforce(session_id="token", instance=Path("org.address").read_text())


command, *arguments = sys.argv[1:]
if command == "request":
    request(int(arguments[0]))
elif command == "rename":
    org().Account.upsert(f"Customer_Number__c/{arguments[0]}", {"Name": arguments[1]})
elif command == "close":
    org().Account.delete(f"Customer_Number__c/{arguments[0]}")
else:
    print(json.dumps(org().Account.get_by_custom_id("Customer_Number__c", arguments[0])))

"""Publishes events with simple-salesforce, as against an org: one by itself, then two in one request."""

import json
import os

from simple_salesforce import Salesforce, SalesforceLogin

os.environ.setdefault("REQUESTS_CA_BUNDLE", "tidegate-data/events/tls/ca.pem")

# Against a sandbox: its own user, password and token, and domain="test" instead of scratch_url.
session_id, instance = SalesforceLogin(
    username="developer@tidegate.local",
    password="tidegate-dev",
    security_token="",
    scratch_url="https://127.0.0.1:8443",
)
org = Salesforce(session_id=session_id, instance=instance)

org.Order_Shipped__e.create({"Order_Number__c": "A-1", "Amount__c": 12.5, "Shipped_At__c": "2026-01-31T12:00:00.000Z"})
records = [{"attributes": {"type": "Order_Shipped__e"}, "Order_Number__c": number} for number in ("A-2", "A-3")]
results = org.restful("composite/sobjects", method="POST", data=json.dumps({"records": records}))
print(f"published {1 + sum(result['success'] for result in results)} events")

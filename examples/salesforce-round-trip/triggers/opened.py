"""Publishes Account_Opened__e for each Account that was created, with the customer's size."""

from events.triggers import trigger

LARGE = 100
"""Employees from which on a customer is large."""


@trigger("AccountChangeEvent", filter="ChangeEventHeader.changeType = 'CREATE'", replay="earliest")
def account_opened(events, context):
    for event in events:
        size = "large" if (event["NumberOfEmployees"] or 0) >= LARGE else "small"
        context.publish("Account_Opened__e", {"Customer_Number__c": event["Customer_Number__c"], "Size__c": size})

"""Scores each payment within the events service, a batch at a time."""

import json

import fraud

from events.triggers import RetryableException, trigger


@trigger("Payment__e", replay="earliest")
def score_payments(events, context):
    if not fraud.newest():
        raise RetryableException("there is no model yet: run train.py")
    version, values = fraud.scores([[event[name] for name in fraud.FEATURES] for event in events])
    for event, value in zip(events, values, strict=True):
        number = event["Payment_Number__c"]
        score = {"payment": number, "model": version, "score": value}
        context.send("scores-of-trigger", number.encode(), json.dumps(score).encode())

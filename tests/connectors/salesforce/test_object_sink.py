"""The object sink: its requests, and how it handles each response. HTTP is recorded; simple-salesforce is real."""

import datetime
import json

import pytest
import requests
import responses

from connect.api import ConnectError, Record, RecordBatch, RetriableConnectError, Schema, SchemaType
from connectors.salesforce.sink import ObjectSink
from tests.support.connect import FakeContext, sink_task

LOGIN = "https://login.salesforce.com/services/oauth2/token"
ORG = "https://org.example.com"
RECORDS = f"{ORG}/services/data/v60.0/composite/sobjects"
PROPERTIES = {
    "salesforce.username": "u@example.com",
    "salesforce.password": "secret",
    "salesforce.consumer.key": "app",
    "salesforce.consumer.secret": "app-secret",
    "salesforce.object": "Account",
}
ACCOUNT = Schema.struct(
    {
        "Name": Schema(SchemaType.STRING),
        "Founded__c": Schema.date(optional=True),
        "Revenue__c": Schema.decimal(2, optional=True),
        "_EventType": Schema(SchemaType.STRING, optional=True),
        "Id": Schema(SchemaType.STRING, optional=True),
    },
    name="Account",
)


@pytest.fixture
def salesforce():
    with responses.RequestsMock() as recorded:
        recorded.post(LOGIN, json={"access_token": "00D!token", "instance_url": ORG, "id": f"{ORG}/id/00D/005"})
        yield recorded


def ok(*ids):
    return [{"id": id_, "success": True, "errors": []} for id_ in ids]


def refused(code, message="no"):
    return [{"success": False, "errors": [{"statusCode": code, "message": message, "fields": ["Name"]}]}]


def batch(*values, schema=ACCOUNT):
    full = [{**dict.fromkeys(ACCOUNT.field_names), **v} if schema else v for v in values]
    return RecordBatch.from_records([Record("accounts", value, schema, offset=n) for n, value in enumerate(full)])


def task(**more):
    properties = PROPERTIES | {name.replace("_", "."): value for name, value in more.items()}
    context = FakeContext(properties)
    return sink_task(ObjectSink, properties, context), context


def sent(salesforce, n=-1):
    return json.loads(salesforce.calls[n].request.body)


def test_a_message_on_a_topic_creates_an_account(salesforce):
    salesforce.post(RECORDS, json=ok("001A", "001B"))
    sink, context = task()
    sink.put([batch({"Name": "Acme", "Founded__c": datetime.date(1999, 1, 2)}, {"Name": "Umbrella"})])
    records = sent(salesforce)["records"]
    assert records[0] == {
        "attributes": {"type": "Account"},
        "Name": "Acme",
        "Founded__c": "1999-01-02",
        "Revenue__c": None,
    }
    assert [r["Name"] for r in records] == ["Acme", "Umbrella"]
    assert salesforce.calls[1].request.headers["Authorization"] == "Bearer 00D!token"
    assert context.errant == []


def test_fields_that_refer_to_other_records_can_be_left_out(salesforce):
    fields = [{"name": "Name", "type": "string"}, {"name": "OwnerId", "type": "reference"}]
    salesforce.get(f"{ORG}/services/data/v60.0/sobjects/Account/describe", json={"fields": fields})
    salesforce.post(RECORDS, json=ok("001A"))
    sink, _ = task(**{"salesforce.ignore.reference.fields": "true"})
    sink.put([batch({"Name": "Acme", "ownerid": "005A"}, schema=None)])
    assert sent(salesforce)["records"] == [{"attributes": {"type": "Account"}, "Name": "Acme"}]


def test_a_message_without_a_schema_works_as_well(salesforce):
    salesforce.post(RECORDS, json=ok("001A"))
    sink, _ = task()
    sink.put([batch({"Name": "Acme"}, schema=None)])
    assert sent(salesforce)["records"] == [{"attributes": {"type": "Account"}, "Name": "Acme"}]


def test_a_refused_record_goes_to_the_errant_reporter_alone(salesforce):
    salesforce.post(
        RECORDS,
        json=[*ok("001A"), *refused("REQUIRED_FIELD_MISSING", "Required fields are missing: [Name]"), *ok("001C")],
    )
    sink, context = task()
    sink.put([batch({"Name": "a"}, {"Name": "b"}, {"Name": "c"})])
    ((record, error),) = context.errant
    assert record.value["Name"] == "b"
    assert "REQUIRED_FIELD_MISSING: Required fields are missing: [Name] (fields Name)" in str(error)


@pytest.mark.parametrize("code", ["UNABLE_TO_LOCK_ROW", "REQUEST_LIMIT_EXCEEDED"])
def test_a_passing_refusal_is_retriable(salesforce, code):
    salesforce.post(RECORDS, json=refused(code))
    sink, _ = task()
    with pytest.raises(RetriableConnectError, match=code):
        sink.put([batch({"Name": "a"})])


def test_a_session_that_expired_is_renewed_once(salesforce):
    salesforce.post(
        RECORDS, status=401, json=[{"errorCode": "INVALID_SESSION_ID", "message": "Session expired or invalid"}]
    )
    salesforce.post(RECORDS, json=ok("001A"))
    sink, _ = task()
    sink.put([batch({"Name": "a"})])
    assert [call.request.url for call in salesforce.calls] == [LOGIN, RECORDS, LOGIN, RECORDS]


def test_a_server_error_and_a_dropped_connection_are_retriable(salesforce):
    salesforce.post(RECORDS, status=503, json=[{"errorCode": "SERVER_UNAVAILABLE", "message": "too busy"}])
    salesforce.post(RECORDS, body=requests.ConnectionError("reset by peer"))
    sink, _ = task()
    for words in ("SERVER_UNAVAILABLE: too busy", "did not answer"):
        with pytest.raises(RetriableConnectError, match=words):
            sink.put([batch({"Name": "a"})])


@pytest.mark.parametrize(
    "cut",
    [
        {"body": requests.exceptions.ChunkedEncodingError("Connection broken: IncompleteRead")},
        {"body": b"<html>busy", "content_type": "text/html"},
        {"status": 429, "body": b"slow down"},
    ],
)
def test_an_answer_that_is_not_whole_and_one_that_asks_for_patience_are_retriable(salesforce, cut):
    salesforce.post(RECORDS, **cut)
    sink, _ = task()
    with pytest.raises(RetriableConnectError):
        sink.put([batch({"Name": "a"})])


def test_a_wrong_password_is_told_in_salesforces_words_and_no_secret_shows():
    with responses.RequestsMock() as recorded:
        recorded.post(LOGIN, status=400, json={"error": "invalid_grant", "error_description": "authentication failure"})
        sink, _ = task()
        with pytest.raises(ConnectError, match="as u@example.com: invalid_grant: authentication failure") as raised:
            sink.put([batch({"Name": "a"})])
        assert "secret" not in str(raised.value)


def test_records_say_themselves_what_to_do_and_order_is_kept(salesforce):
    salesforce.post(RECORDS, json=ok("001A"))
    salesforce.patch(RECORDS, json=ok("001A"))
    salesforce.delete(RECORDS, json=ok("001A"))
    sink, _ = task()
    values = [{"Name": "a", "_EventType": kind, "Id": "001A"} for kind in ("created", "updated", "deleted")]
    sink.put([batch(*values)])
    assert [call.request.method for call in salesforce.calls[1:]] == ["POST", "PATCH", "DELETE"]
    assert sent(salesforce, 2)["records"][0]["Id"] == "001A"
    assert "ids=001A" in salesforce.calls[-1].request.url


def test_an_upsert_goes_by_the_external_id(salesforce):
    salesforce.patch(f"{RECORDS}/Account/Key__c", json=ok("001A"))
    properties = {
        "salesforce.sink.object.operation": "upsert",
        "salesforce.use.custom.id.field": "true",
        "salesforce.custom.id.field.name": "Key__c",
    }
    context = FakeContext(PROPERTIES | properties)
    sink = sink_task(ObjectSink, PROPERTIES | properties, context)
    sink.put([batch({"Key__c": "k1", "Name": "a"}, {"Name": "no key"}, schema=None)])
    assert sent(salesforce)["records"] == [{"attributes": {"type": "Account"}, "Key__c": "k1", "Name": "a"}]
    assert "needs the field Key__c" in str(context.errant[0][1])


def test_more_than_200_records_take_several_requests(salesforce):
    salesforce.post(RECORDS, json=ok(*map(str, range(200))))
    salesforce.post(RECORDS, json=ok("last"))
    sink, _ = task()
    sink.put([batch(*({"Name": str(n)} for n in range(201)))])
    assert [len(sent(salesforce, n)["records"]) for n in (1, 2)] == [200, 1]

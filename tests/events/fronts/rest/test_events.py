from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import simple_salesforce
from simple_salesforce import Salesforce, SalesforceLogin

from tests.support.events import PASSWORD, USER, EventsThread


@pytest.fixture(scope="module")
def org(service: EventsThread) -> Iterator[Salesforce]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", service.addresses["ca"])
        session_id, instance = SalesforceLogin(
            username=USER, password=PASSWORD, security_token="", scratch_url=service.secure_url
        )
        yield Salesforce(session_id=session_id, instance=instance)


def call(service: EventsThread, method: str, path: str, body: Any = None, **more: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {service.token()}"} | more.pop("headers", {})
    data = body if isinstance(body, bytes | None) else json.dumps(body)
    headers.setdefault("Content-Type", "application/json")
    return requests.request(method, f"{service.url}{path}", data=data, headers=headers, timeout=60, **more)


EVENTS = "/services/data/v60.0/sobjects/Order_Shipped__e"


def test_simple_salesforce_logs_in_over_soap_and_publishes(service: EventsThread, org: Salesforce) -> None:
    answer = org.Order_Shipped__e.create({"Order_Number__c": "A-1", "Amount__c": 12.5, "Express__c": True})
    assert answer["success"] is True
    assert answer["errors"][0]["statusCode"] == "OPERATION_ENQUEUED"
    assert service.memory_log.records("Order_Shipped__e")[-1].key.decode() == answer["errors"][0]["message"]


def test_simple_salesforce_describes_events(org: Salesforce) -> None:
    assert "Order_Shipped__e" in [sobject["name"] for sobject in org.describe()["sobjects"]]
    fields = {field["name"]: field for field in org.Order_Shipped__e.describe()["fields"]}
    assert fields["Order_Number__c"]["length"] == 40
    assert fields["Order_Number__c"]["nillable"] is False
    assert (fields["Amount__c"]["precision"], fields["Amount__c"]["scale"]) == (10, 2)
    assert fields["ReplayId"]["createable"] is False


def test_simple_salesforce_reads_limits(org: Salesforce) -> None:
    assert org.limits()["StreamingApiConcurrentClients"]["Max"] == 2000


def test_simple_salesforce_sees_the_errors_it_knows(org: Salesforce) -> None:
    with pytest.raises(simple_salesforce.exceptions.SalesforceMalformedRequest) as refused:
        org.Order_Shipped__e.create({"Nope__c": 1})
    assert refused.value.content == [
        {
            "message": "No such column 'Nope__c' on sobject of type Order_Shipped__e",
            "errorCode": "INVALID_FIELD",
            "fields": ["Nope__c"],
        }
    ]
    with pytest.raises(simple_salesforce.exceptions.SalesforceResourceNotFound):
        org.Missing__e.create({"A__c": 1})


def test_a_wrong_password_is_a_soap_fault(service: EventsThread) -> None:
    with pytest.raises(simple_salesforce.exceptions.SalesforceAuthenticationFailed) as failed:
        SalesforceLogin(username=USER, password="wrong", security_token="", scratch_url=service.url)
    assert failed.value.code == "INVALID_LOGIN"


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({}, "REQUIRED_FIELD_MISSING", "Required fields are missing: [Order_Number__c]"),
        ({"Order_Number__c": ""}, "REQUIRED_FIELD_MISSING", "Required fields are missing: [Order_Number__c]"),
        (
            {"Order_Number__c": "x" * 41},
            "STRING_TOO_LONG",
            f"Order Number: data value too large: {'x' * 41} (max length=40)",
        ),
        ({"Order_Number__c": {"a": 1}}, "JSON_PARSER_ERROR", "string from START_OBJECT value {"),
        ({"Order_Number__c": "a", "Amount__c": "many"}, "JSON_PARSER_ERROR", "double from VALUE_STRING value many"),
        ({"Order_Number__c": "a", "Amount__c": 1e9}, "NUMBER_OUTSIDE_VALID_RANGE", "at most 8 digits"),
        ({"Order_Number__c": "a", "Amount__c": True}, "JSON_PARSER_ERROR", "double from VALUE_TRUE value true"),
        ({"Order_Number__c": [1]}, "JSON_PARSER_ERROR", "string from START_ARRAY value ["),
        (
            {"Order_Number__c": "a", "Due__c": 20260131},
            "JSON_PARSER_ERROR",
            "date from VALUE_NUMBER_INT value 20260131",
        ),
        (
            {"Order_Number__c": "a", "Shipped_At__c": "2017-10-17 00:00:00"},
            "JSON_PARSER_ERROR",
            "datetime from VALUE_STRING value 2017-10-17 00:00:00 or request may be missing a required field",
        ),
        (
            {"Order_Number__c": "a", "Due__c": "2020-04-30T13:19:18.000000+02:00"},
            "JSON_PARSER_ERROR",
            "date from VALUE_STRING value 2020-04-30T13:19:18.000000+02:00 or",
        ),
        ({"Order_Number__c": "a", "Due__c": ""}, "JSON_PARSER_ERROR", "date from VALUE_STRING value  or"),
        ({"Order_Number__c": "a", "Amount__c": "1_0"}, "JSON_PARSER_ERROR", "double from VALUE_STRING value 1_0"),
        (
            {"Order_Number__c": "a", "Shipped_At__c": "soon"},
            "JSON_PARSER_ERROR",
            "datetime from VALUE_STRING value soon",
        ),
        ({"Order_Number__c": "a", "Due__c": "2026-13-01"}, "JSON_PARSER_ERROR", "date from"),
        ({"Order_Number__c": "a", "Express__c": "perhaps"}, "JSON_PARSER_ERROR", "boolean"),
        ({"Order_Number__c": "a", "Express__c": ""}, "JSON_PARSER_ERROR", "boolean from VALUE_STRING value  or"),
        ({"Order_Number__c": "a", "Express__c": None}, "INVALID_TYPE_ON_FIELD_IN_RECORD", "Express: value not of"),
        ({"Order_Number__c": "a", "CreatedById": "005"}, "INVALID_FIELD_FOR_INSERT_UPDATE", "CreatedById"),
        ({"Order_Number__c": "\ud800"}, "JSON_PARSER_ERROR", "string"),
        ({"\ud800": "x"}, "INVALID_FIELD", "No such column"),
        (b'{"Amount__c": ' + b"1" * 5000 + b"}", "JSON_PARSER_ERROR", "thousands of digits"),
        ([], "JSON_PARSER_ERROR", "list"),
        (b"{", "JSON_PARSER_ERROR", "not valid JSON"),
        (b"\xff", "JSON_PARSER_ERROR", "not valid JSON"),
        (b"[" * 100_000, "JSON_PARSER_ERROR", "not valid JSON"),
    ],
)
def test_a_bad_event_is_refused_with_salesforces_code(
    service: EventsThread, body: Any, code: str, message: str
) -> None:
    before = len(service.memory_log.records("Order_Shipped__e"))
    answer = call(service, "POST", EVENTS, body)
    assert answer.status_code == 400
    (error,) = answer.json()
    assert error["errorCode"] == code
    assert message in error["message"]
    assert len(service.memory_log.records("Order_Shipped__e")) == before


def test_a_value_of_a_wrong_type_is_said_to_be_where_it_begins(service: EventsThread) -> None:
    answer = call(service, "POST", EVENTS, b'{\r\n "Order_Number__c": "a", "x\\u0061": null,\n  "amount__C" : "many"}')
    assert answer.json()[0]["errorCode"] == "INVALID_FIELD"
    answer = call(service, "POST", EVENTS, b'{\r\n "Order_Number__c": "a",\n  "amount__C" : "many"}')
    assert answer.json() == [
        {
            "message": "Cannot deserialize instance of double from VALUE_STRING value many or request may be missing a required field "
            "at [line:3, column:17]",
            "errorCode": "JSON_PARSER_ERROR",
            "fields": ["Amount__c"],
        }
    ]


def test_field_names_are_read_without_regard_to_case(service: EventsThread) -> None:
    assert call(service, "POST", EVENTS + "/", {"order_number__C": "lower"}).status_code == 201


def test_a_request_without_a_valid_session_is_refused(service: EventsThread) -> None:
    answer = requests.get(f"{service.url}{EVENTS}/describe", timeout=60)
    assert (answer.status_code, answer.json()) == (
        401,
        [{"message": "Session expired or invalid", "errorCode": "INVALID_SESSION_ID"}],
    )


def test_versions_need_no_session(service: EventsThread) -> None:
    versions = requests.get(f"{service.url}/services/data/", timeout=60).json()
    assert {"label": "Winter '24", "url": "/services/data/v59.0", "version": "59.0"} in versions


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/services/data/v60.0/nothing", 404, "NOT_FOUND"),
        ("GET", "/services/data/v7.0/sobjects", 404, "NOT_FOUND"),
        ("DELETE", EVENTS, 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/services/data/v60.0/sobjects/Missing__e/describe", 404, "NOT_FOUND"),
        ("GET", "/services/data/v60.0/event/eventSchema/99999", 404, "NOT_FOUND"),
        ("GET", "/services/data/v60.0/event/eventSchema/x", 404, "NOT_FOUND"),
        ("GET", f"{EVENTS}/eventSchema?payloadFormat=ROUND", 400, "INVALID_TYPE"),
    ],
)
def test_missing_resources_get_salesforces_errors(
    service: EventsThread, method: str, path: str, status: int, code: str
) -> None:
    answer = call(service, method, path)
    assert (answer.status_code, answer.json()[0]["errorCode"]) == (status, code)


def test_another_content_type_is_refused(service: EventsThread) -> None:
    answer = call(service, "POST", EVENTS, b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (answer.status_code, answer.json()[0]["errorCode"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_collection_answers_for_each_record(service: EventsThread, org: Salesforce) -> None:
    def record(kind: str, **fields: Any) -> dict[str, Any]:
        return {"attributes": {"type": kind}, **fields}

    records = [
        record("Order_Shipped__e", Order_Number__c="C-1"),
        record("Order_Shipped__e"),
        record("Missing__e", A__c=1),
        record("Order_Shipped__e", Order_Number__c="C-2"),
        {"Order_Number__c": "no type"},
    ]
    answer = org.restful("composite/sobjects", method="POST", json={"records": records})
    assert [result["success"] for result in answer] == [True, False, False, True, False]
    codes = [result["errors"][0]["statusCode"] for result in answer]
    assert codes == [
        "OPERATION_ENQUEUED",
        "REQUIRED_FIELD_MISSING",
        "INVALID_TYPE",
        "OPERATION_ENQUEUED",
        "INVALID_TYPE",
    ]


def test_all_or_none_publishes_nothing_when_one_is_refused(service: EventsThread) -> None:
    before = len(service.memory_log.records("Order_Shipped__e"))
    good = {"attributes": {"type": "Order_Shipped__e"}, "Order_Number__c": "D"}
    bad = {"attributes": {"type": "Order_Shipped__e"}}
    path = "/services/data/v60.0/composite/sobjects"
    answer = call(service, "POST", path, {"allOrNone": True, "records": [good, bad]}).json()
    assert [result["errors"][0]["statusCode"] for result in answer] == [
        "ALL_OR_NONE_OPERATION_ROLLED_BACK",
        "REQUIRED_FIELD_MISSING",
    ]
    assert len(service.memory_log.records("Order_Shipped__e")) == before


@pytest.mark.parametrize(
    "body", [{}, {"records": {}}, {"records": [1]}, {"records": [], "allOrNone": "yes"}, {"records": [{}] * 201}]
)
def test_a_malformed_collection_is_refused_whole(service: EventsThread, body: Any) -> None:
    assert call(service, "POST", "/services/data/v60.0/composite/sobjects", body).status_code == 400


def test_event_schemas_are_shown_expanded_and_compact(service: EventsThread) -> None:
    compact = call(service, "GET", f"{EVENTS}/eventSchema?payloadFormat=COMPACT").json()
    assert compact["fields"][0] == {"name": "CreatedDate", "type": "long", "doc": "CreatedDate:DateTime"}
    expanded = call(service, "GET", f"/services/data/v60.0/event/eventSchema/{compact['uuid']}").json()
    assert expanded["type"] == "expanded-record"
    payload = expanded["fields"][0]["type"]["fields"][1]["type"]
    assert payload["fields"][0]["type"] == "string"


def test_publishing_says_so_when_the_log_is_away(service: EventsThread) -> None:
    service.memory_log.down = True
    try:
        answer = call(service, "POST", EVENTS, {"Order_Number__c": "E"})
    finally:
        service.memory_log.down = False
    assert (answer.status_code, answer.json()[0]["errorCode"]) == (503, "SERVER_UNAVAILABLE")


def test_metrics_count_what_was_published_and_refused(service: EventsThread) -> None:
    def counted(name: str) -> float:
        lines = requests.get(f"{service.url}/metrics", timeout=60).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    published, refused = (
        counted('events_published_total{event="Order_Shipped__e"'),
        counted('events_refused_total{face="rest"}'),
    )
    call(service, "POST", EVENTS, {"Order_Number__c": "M"})
    call(service, "POST", EVENTS, {"Nope__c": 1})
    assert counted('events_published_total{event="Order_Shipped__e"') == published + 1
    assert counted('events_refused_total{face="rest"}') == refused + 1

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from events.fronts.rest.references import MOST_BYTES, MissingReference, References
from tests.proofs import effort
from tests.support.events import EventsThread

BASE = "/services/data/v60.0"
EVENT = f"{BASE}/sobjects/Order_Shipped__e"


def call(service: EventsThread, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
    named = {"Authorization": f"Bearer {service.token()}", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return requests.request(method, service.url + path, json=body, headers=named, timeout=60)


def stored(service: EventsThread) -> int:
    return len(service.memory_log.records("Order_Shipped__e"))


def post(reference: str, number: Any, url: str = EVENT) -> dict[str, Any]:
    return {"method": "POST", "url": url, "referenceId": reference, "body": {"Order_Number__c": number}}


def composite(service: EventsThread, *requests_: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    answer = call(service, "POST", f"{BASE}/composite", {"compositeRequest": list(requests_), **more})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["compositeResponse"]
    return results


def test_later_requests_have_results_of_earlier_ones_in_them(service: EventsThread) -> None:
    describe = {"method": "GET", "url": f"{BASE}/sobjects/Order_Shipped__e/describe", "referenceId": "about"}
    answers = composite(
        service,
        describe,
        post("first", "@{about.label} 1", f"{BASE}/sobjects/@{{about.name}}"),
        post("second", "@{first.id}"),
    )
    assert [(answer["referenceId"], answer["httpStatusCode"]) for answer in answers] == [
        ("about", 200),
        ("first", 201),
        ("second", 201),
    ]
    assert answers[1]["httpHeaders"]["Location"].endswith(answers[1]["body"]["id"])
    values = [record.value for record in service.memory_log.records("Order_Shipped__e")[-2:]]
    assert b"Order Shipped 1" in values[0]
    assert answers[1]["body"]["id"].encode() in values[1]


def test_requests_that_refer_to_a_failed_one_are_halted_and_the_rest_runs(service: EventsThread) -> None:
    before = stored(service)
    answers = composite(service, post("bad", None), post("after", "@{bad.id}"), post("good", "fine"))
    assert [answer["httpStatusCode"] for answer in answers] == [400, 400, 201]
    assert [answer["body"][0]["errorCode"] for answer in answers[:2]] == ["REQUIRED_FIELD_MISSING", "PROCESSING_HALTED"]
    assert stored(service) == before + 1


@pytest.mark.parametrize("text", ["@{all}", "x@{all}"])
def test_references_are_bounded_by_what_they_come_to(service: EventsThread, text: str) -> None:
    before = stored(service)
    describe = {"method": "GET", "url": f"{BASE}/sobjects/Order_Shipped__e/describe", "referenceId": "all"}
    body = {"Order_Number__c": "1", "many": [text] * 20_000}
    large = {"method": "POST", "url": EVENT, "referenceId": "large", "body": body}
    tracemalloc.start()
    try:
        answers = composite(service, describe, large, post("good", "fine"))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [answer["httpStatusCode"] for answer in answers] == [200, 400, 201]
    assert f"come to more than {MOST_BYTES} bytes, with @{{all}}" in answers[1]["body"][0]["message"]
    assert stored(service) == before + 1 and most < 8 * MOST_BYTES


@pytest.mark.parametrize("last", ["record", "collection"])
def test_all_or_none_holds_back_every_event_of_a_composite(service: EventsThread, last: str) -> None:
    before = stored(service)
    bad = post("bad", None)
    if last == "collection":
        records = [{"attributes": {"type": "Order_Shipped__e"}}]
        bad |= {"url": f"{BASE}/composite/sobjects", "body": {"records": records}}
    answers = composite(service, post("one", "1"), bad, post("three", "3"), allOrNone=True)
    assert [answers[i]["body"][0]["errorCode"] for i in (0, 2)] == ["PROCESSING_HALTED"] * 2
    assert "REQUIRED_FIELD_MISSING" in str(answers[1])
    assert stored(service) == before
    answers = composite(service, post("one", "1"), post("two", "@{one.id}"), allOrNone=True)
    assert [answer["httpStatusCode"] for answer in answers] == [201, 201]
    assert stored(service) == before + 2


def test_a_batch_runs_requests_on_their_own_and_halts_if_asked(service: EventsThread) -> None:
    good = {"method": "POST", "url": "v60.0/sobjects/Order_Shipped__e", "richInput": {"Order_Number__c": "b"}}
    bad = good | {"richInput": {"Nope__c": 1}}
    limits = {"method": "GET", "url": "v59.0/limits"}
    later = {"method": "GET", "url": "v66.0/limits"}
    body = {"batchRequests": [good, bad, limits, later, {"method": "DELETE", "url": "v60.0/limits"}]}
    answer = call(service, "POST", f"{BASE}/composite/batch", body).json()
    assert answer["hasErrors"] is True
    assert [result["statusCode"] for result in answer["results"]] == [201, 400, 200, 400, 405]
    halted = call(service, "POST", f"{BASE}/composite/batch/", body | {"haltOnError": True}).json()["results"]
    assert [result["statusCode"] for result in halted] == [201, 400, 412, 412, 412]
    assert halted[2]["result"][0]["errorCode"] == "BATCH_PROCESSING_HALTED"


def test_a_tree_is_all_or_none(service: EventsThread) -> None:
    def record(reference: str, **fields: Any) -> dict[str, Any]:
        return {"attributes": {"type": "Order_Shipped__e", "referenceId": reference}, **fields}

    path, before = f"{BASE}/composite/tree/Order_Shipped__e", stored(service)
    good = [record("a", Order_Number__c="a"), record("b", Order_Number__c="b")]
    made = call(service, "POST", path, {"records": good})
    assert (made.status_code, made.json()["hasErrors"]) == (201, False)
    assert [result["referenceId"] for result in made.json()["results"]] == ["a", "b"]
    refused = call(service, "POST", path, {"records": [*good, record("c")]})
    assert refused.status_code == 400
    (result,) = refused.json()["results"]
    assert (result["referenceId"], result["errors"][0]["statusCode"]) == ("c", "REQUIRED_FIELD_MISSING")
    assert stored(service) == before + 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("composite", {}),
        ("composite", {"compositeRequest": []}),
        ("composite", {"compositeRequest": [{"method": "POST"}]}),
        ("composite", {"compositeRequest": [post("1x", "a")]}),
        ("composite", {"compositeRequest": [post("x", "a"), post("x", "b")]}),
        ("composite", {"compositeRequest": [post(f"x{n}", "a") for n in range(26)]}),
        ("composite", {"compositeRequest": [post("x", "a") | {"httpHeaders": {"a": 1}}]}),
        ("composite/batch", {"batchRequests": [{"method": "SING", "url": "v60.0/limits"}]}),
        ("composite/batch", {"batchRequests": [1]}),
        ("composite/tree/Order_Shipped__e", {"records": []}),
        ("composite/tree/Order_Shipped__e", {"records": [{"attributes": {"type": "Order_Shipped__e"}}]}),
        ("composite/tree/Order_Shipped__e", {"records": [{"attributes": {"type": "X__e", "referenceId": "a"}}]}),
    ],
)
def test_a_malformed_request_is_refused_whole(service: EventsThread, path: str, body: Any) -> None:
    before = stored(service)
    answer = call(service, "POST", f"{BASE}/{path}", body)
    assert (answer.status_code, stored(service)) == (400, before)
    assert answer.json()[0]["errorCode"]


def test_composites_do_not_hold_composites(service: EventsThread) -> None:
    inner = {"method": "POST", "url": f"{BASE}/composite", "referenceId": "x", "body": {}}
    other = {"method": "GET", "url": "/services/oauth2/userinfo", "referenceId": "y"}
    assert [answer["httpStatusCode"] for answer in composite(service, inner, other)] == [404, 404]


def test_the_same_idempotency_key_is_published_once(service: EventsThread) -> None:
    before = stored(service)
    first = call(service, "POST", EVENT, {"Order_Number__c": "k"}, Idempotency_Key="order-1").json()
    assert call(service, "POST", EVENT, {"Order_Number__c": "k"}, Idempotency_Key="order-1").json() == first
    assert call(service, "POST", EVENT, {"Order_Number__c": "k"}, Idempotency_Key="order-2").json() != first
    other = call(service, "POST", EVENT, {"Order_Number__c": "other"}, Idempotency_Key="order-1")
    assert (other.status_code, other.json()[0]["errorCode"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert stored(service) == before + 2
    record = {"attributes": {"type": "Order_Shipped__e"}, "Order_Number__c": "c"}
    for all_or_none in (True, False, True):
        body = {"records": [record, record], "allOrNone": all_or_none}
        call(service, "POST", f"{BASE}/composite/sobjects", body, Idempotency_Key="two")
    assert stored(service) == before + 4
    for all_or_none in (False, True):
        body = {"compositeRequest": [post("a", "1"), post("b", "2")], "allOrNone": all_or_none}
        call(service, "POST", f"{BASE}/composite", body, Idempotency_Key="three")
    assert stored(service) == before + 6
    assert call(service, "POST", EVENT, {"Order_Number__c": "k"}, Idempotency_Key="k" * 300).status_code == 400


VALUES = st.recursive(
    st.none() | st.text(max_size=8) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=effort(100, 3000))
@given(VALUES, st.from_regex(r"@\{[a-b]?(\.[a-b]|\[[0-9]\]|.){0,3}\}", fullmatch=True))
def test_any_reference_is_resolved_or_missing(result: Any, text: str) -> None:
    try:
        references = References()
        references.add("a", result)
        references.add("b", {"a": [1]})
        references.resolved({"x": [text, f"a {text}"]})
    except MissingReference as error:
        assert "Invalid reference" in str(error)


REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from(["GET", "POST", "", 1]),
        "url": st.sampled_from([EVENT, "", 1, f"{BASE}/%ff?q=%00", "v60.0/limits", f"{BASE}/sobjects/\ud800"])
        | st.text(max_size=9),
        "referenceId": st.sampled_from(["a", "b", 1, ""]),
        "body": VALUES,
        "richInput": VALUES,
        "httpHeaders": st.sampled_from([{}, {"Idempotency-Key": "\u20ac"}, [], None]),
    },
)


@pytest.fixture(scope="module")
def session(service: EventsThread) -> Iterator[requests.Session]:
    with requests.Session() as made:
        made.headers["Authorization"] = f"Bearer {service.token()}"
        yield made


@settings(max_examples=effort(40, 1200), deadline=None)
@given(
    requests_=st.lists(REQUESTS, max_size=3),
    flag=st.booleans() | st.text(max_size=1),
    kind=st.sampled_from(["", "/batch"]),
)
def test_any_body_is_answered(
    service: EventsThread, session: requests.Session, requests_: Any, flag: Any, kind: str
) -> None:
    body = {"compositeRequest": requests_, "batchRequests": requests_, "allOrNone": flag, "haltOnError": flag}
    answer = session.post(f"{service.url}{BASE}/composite{kind}", json=body, timeout=60)
    assert answer.status_code in (200, 400), answer.text
    for result in (
        answer.json()
        if isinstance(answer.json(), list)
        else answer.json().get("compositeResponse", answer.json().get("results"))
    ):
        assert result.get("httpStatusCode", result.get("statusCode", 400)) < 500, result

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proofs import effort
from tests.support.events import PASSWORD, USER, EventsThread


def envelope(body: str) -> str:
    space = 'xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns:n="urn:partner.soap.sforce.com"'
    return f'<?xml version="1.0" encoding="utf-8"?><e:Envelope {space}><e:Body>{body}</e:Body></e:Envelope>'


LOGIN = f"<n:login><n:username>{USER}</n:username><n:password>{PASSWORD}</n:password></n:login>"


def post(service: EventsThread, body: str | bytes, path: str = "/services/Soap/u/60.0") -> requests.Response:
    headers = {"Content-Type": "text/xml; charset=UTF-8", "SOAPAction": '""'}
    return requests.post(
        service.url + path, data=body.encode() if isinstance(body, str) else body, headers=headers, timeout=60
    )


def fault_code(answer: requests.Response) -> str:
    assert answer.status_code == 500
    root = ET.fromstring(answer.content)
    (code,) = root.iter("{urn:fault.partner.soap.sforce.com}exceptionCode")
    assert root.find(".//faultstring").text.startswith(f"{code.text}: ")
    return code.text


@pytest.mark.parametrize("path", ["/services/Soap/u/60.0", "/services/Soap/u/44.0/", "/services/Soap/c/57.0/"])
def test_a_login_answers_in_salesforces_order(service: EventsThread, path: str) -> None:
    answer = post(service, envelope(LOGIN), path)
    assert answer.status_code == 200
    result = ET.fromstring(answer.content)[0][0][0]
    names = [element.tag.rpartition("}")[2] for element in result]
    assert names == ["metadataServerUrl", "passwordExpired", "sandbox", "serverUrl", "sessionId", "userId", "userInfo"]
    values = {element.tag.rpartition("}")[2]: element.text for element in result}
    assert values["serverUrl"].startswith(f"{service.url}/services/Soap/")
    assert service.server.access.session(values["sessionId"]).user_id == values["userId"]
    assert answer.text.count(f"<organizationId>{service.server.access.org_id}</organizationId>") == 1
    # Salesforce's Pub/Sub example for Python reads the organization by its place
    assert result[6][8].text == service.server.access.org_id


def test_a_session_says_whose_it_is_and_ends(service: EventsThread) -> None:
    header = f"<e:Header><n:SessionHeader><n:sessionId>{service.token()}</n:sessionId></n:SessionHeader></e:Header>"

    def ask(operation: str) -> requests.Response:
        return post(service, envelope(f"<n:{operation}/>").replace("<e:Body>", f"{header}<e:Body>"))

    said = ask("getUserInfo")
    assert (said.status_code, f"<userName>{USER}</userName>" in said.text) == (200, True)
    assert ask("logout").status_code == 200
    for operation in ("getUserInfo", "logout", "create"):
        assert fault_code(ask(operation)) == "INVALID_SESSION_ID"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (envelope(LOGIN.replace(PASSWORD, "wrong")), "INVALID_LOGIN"),
        (envelope("<n:login/>"), "INVALID_LOGIN"),
        (envelope("<n:query/>"), "INVALID_OPERATION"),
        (envelope(""), "MALFORMED_XML"),
        ("<a/>", "MALFORMED_XML"),
        ("", "MALFORMED_XML"),
        (f'<!DOCTYPE a [<!ENTITY b "{"x" * 1000}">]>' + envelope(LOGIN)[38:], "MALFORMED_XML"),
        ('<?xml version="1.0" encoding="nonsense"?><a/>', "MALFORMED_XML"),
        (b"\xff" * 100_000, "MALFORMED_XML"),
    ],
)
def test_an_invalid_login_gets_a_soap_fault(service: EventsThread, body: str | bytes, code: str) -> None:
    assert fault_code(post(service, body)) == code


def test_an_unknown_version_is_a_fault(service: EventsThread) -> None:
    assert fault_code(post(service, envelope(LOGIN), "/services/Soap/u/1.0")) == "NOT_FOUND"


PIECES = [
    "<e:Envelope>",
    "<Envelope>",
    "</Envelope>",
    "<Body>",
    "</Body>",
    "<login>",
    "</login>",
    "<username>",
    "</username>",
    "&lt;",
    "&a;",
]
PIECES += ["<!DOCTYPE x>", "<![CDATA[", "]]>", "<?x?>", "<!--", "-->", "\0", "ü", '<a b="', '"/>']


@settings(max_examples=effort(80, 2400), deadline=None)
@given(
    st.binary(max_size=100) | st.lists(st.sampled_from(PIECES), max_size=10).map(lambda parts: "".join(parts).encode())
)
def test_any_body_is_answered_with_a_fault(service: EventsThread, body: bytes) -> None:
    assert fault_code(post(service, body)) in ("MALFORMED_XML", "INVALID_OPERATION", "INVALID_LOGIN")


def create(service: EventsThread, records: str, *, token: str | None = None, headers: str = "") -> requests.Response:
    spaces = 'xmlns:x="http://www.w3.org/2001/XMLSchema-instance" xmlns:n="urn:partner.soap.sforce.com"'
    session = f"<n:SessionHeader><n:sessionId>{token or service.token()}</n:sessionId></n:SessionHeader>"
    body = (
        f'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" {spaces}><e:Header>{session}{headers}</e:Header>'
        f"<e:Body><n:create>{records}</n:create></e:Body></e:Envelope>"
    )
    return post(service, body)


def results(answer: requests.Response) -> list[tuple[str | None, str | None, str | None]]:
    assert answer.status_code == 200, answer.text
    space = "{urn:partner.soap.sforce.com}"
    return [
        (
            result.findtext(f"{space}success"),
            result.findtext(f".//{space}statusCode"),
            result.findtext(f".//{space}fields"),
        )
        for result in ET.fromstring(answer.content).iter(f"{space}result")
    ]


GOOD = (
    "<n:sObjects><n:type>Order_Shipped__e</n:type><n:Order_Number__c>S-1</n:Order_Number__c><n:Amount__c>1.5</n:Amount__c>"
    "<n:Express__c>true</n:Express__c><n:fieldsToNull>Note__c</n:fieldsToNull></n:sObjects>"
)
TYPED = '<n:sObjects x:type="n:Order_Shipped__e"><n:Order_Number__c>S-2</n:Order_Number__c><n:Due__c x:nil="true"/></n:sObjects>'
BAD = "<n:sObjects><n:type>Order_Shipped__e</n:type></n:sObjects>"


def test_create_publishes_events_and_answers_for_each(service: EventsThread) -> None:
    before = len(service.memory_log.records("Order_Shipped__e"))
    answer = create(service, GOOD + BAD + TYPED + "<n:sObjects><n:type>Missing__e</n:type></n:sObjects>")
    assert results(answer) == [
        ("true", "OPERATION_ENQUEUED", None),
        ("false", "REQUIRED_FIELD_MISSING", "Order_Number__c"),
        ("true", "OPERATION_ENQUEUED", None),
        ("false", "INVALID_TYPE", None),
    ]
    assert len(service.memory_log.records("Order_Shipped__e")) == before + 2


def test_create_holds_back_all_when_asked(service: EventsThread) -> None:
    before = len(service.memory_log.records("Order_Shipped__e"))
    header = "<n:AllOrNoneHeader><n:allOrNone>true</n:allOrNone></n:AllOrNoneHeader>"
    codes = [code for _, code, _ in results(create(service, GOOD + BAD, headers=header))]
    assert codes == ["ALL_OR_NONE_OPERATION_ROLLED_BACK", "REQUIRED_FIELD_MISSING"]
    assert len(service.memory_log.records("Order_Shipped__e")) == before
    assert len(results(create(service, GOOD + TYPED, headers=header))) == 2
    assert len(service.memory_log.records("Order_Shipped__e")) == before + 2


def test_create_needs_a_session_and_takes_200(service: EventsThread) -> None:
    assert fault_code(create(service, GOOD, token="x")) == "INVALID_SESSION_ID"
    assert fault_code(create(service, BAD * 201)) == "EXCEEDED_ID_LIMIT"


def test_only_who_has_a_session_may_send_much(service: EventsThread) -> None:
    much = "<n:x/>" * 10_000 + "<"  # not well-formed, which nobody sees who stops reading before
    assert fault_code(create(service, much, token="x")) == "INVALID_SESSION_ID"
    assert fault_code(create(service, much)) == "MALFORMED_XML"
    answer = post(service, envelope(LOGIN.replace("<n:username>", f"<n:x>{'x' * 40_000}</n:x><n:username>")))
    assert fault_code(answer) == "MALFORMED_XML"
    assert "only create may have more than 32768" in answer.text
    headers = "".join(f"<n:h>{n}</n:h>" for n in range(4_000))
    assert "with its headers and its name" in create(service, GOOD, headers=headers).text


def test_the_number_of_xml_elements_is_limited(service: EventsThread) -> None:
    answer = create(service, f"<n:sObjects>{'<a/>' * 250_001}</n:sObjects>")
    assert fault_code(answer) == "MALFORMED_XML"
    assert "more than 250000 elements" in answer.text


def test_many_long_events_come_in_a_request_of_many_pieces(service: EventsThread) -> None:
    long = GOOD.replace("<n:fieldsToNull>Note__c</n:fieldsToNull>", f"<n:Note__c>{'ü' * 200}</n:Note__c>")
    assert [success for success, _, _ in results(create(service, long * 200))] == ["true"] * 200


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="<&>\ufffe\uffff"), max_size=8
)
CHILDREN = st.tuples(st.sampled_from(["type", "Order_Number__c", "Amount__c", "fieldsToNull", "x", "Due__c"]), TEXTS)


@settings(max_examples=effort(30, 900), deadline=None)
@given(st.lists(st.lists(CHILDREN, max_size=4), max_size=3))
def test_any_records_are_answered_for(service: EventsThread, records: list[list[tuple[str, str]]]) -> None:
    inner = "".join(
        f"<n:sObjects>{''.join(f'<n:{name}>{text}</n:{name}>' for name, text in record)}</n:sObjects>"
        for record in records
    )
    assert len(results(create(service, inner))) == len(records)

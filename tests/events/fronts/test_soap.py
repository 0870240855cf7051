from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.events import PASSWORD, USER, EventsThread


def envelope(body: str) -> str:
    space = 'xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns:n="urn:partner.soap.sforce.com"'
    return f'<?xml version="1.0" encoding="utf-8"?><e:Envelope {space}><e:Body>{body}</e:Body></e:Envelope>'


LOGIN = f"<n:login><n:username>{USER}</n:username><n:password>{PASSWORD}</n:password></n:login>"


def post(service: EventsThread, body: str | bytes, path: str = "/services/Soap/u/60.0") -> requests.Response:
    headers = {"Content-Type": "text/xml; charset=UTF-8", "SOAPAction": '""'}
    return requests.post(
        service.url + path, data=body.encode() if isinstance(body, str) else body, headers=headers, timeout=10
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
def test_what_is_no_login_is_a_fault(service: EventsThread, body: str | bytes, code: str) -> None:
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


@settings(max_examples=80, deadline=None)
@given(
    st.binary(max_size=100) | st.lists(st.sampled_from(PIECES), max_size=10).map(lambda parts: "".join(parts).encode())
)
def test_any_body_is_answered_with_a_fault(service: EventsThread, body: bytes) -> None:
    assert fault_code(post(service, body)) in ("MALFORMED_XML", "INVALID_OPERATION", "INVALID_LOGIN")

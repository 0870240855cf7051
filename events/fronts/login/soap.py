"""SOAP login, create, getUserInfo and logout, as in Salesforce's partner (``u``) and enterprise (``c``) APIs.

XML is parsed safely.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Session
from events.bus.outcomes import Outcome, Published, record_error, record_id
from events.bus.publishing import JsonEvent, Publisher
from events.errors import (
    BadRequest,
    EventsError,
    InvalidSession,
    LoginError,
    MalformedXml,
    ResourceNotFound,
    TooManyRecords,
)
from events.fronts.records import MAX_RECORDS
from events.fronts.requests import base_url, check_version
from events.model import xml
from tidegate.kit.errors import TidegateError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["SoapFront", "fault"]

_PIECE_BYTES: Final = 32 * 1024
"""Bytes of a request parsed at once: about 10 ms."""
_APIS = {"u": "partner", "c": "enterprise"}
_ENVELOPE = "http://schemas.xmlsoap.org/soap/envelope/"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_NOT_XML = frozenset(map(chr, (*range(0xD800, 0xE000), 0xFFFE, 0xFFFF)))


class UnknownOperation(BadRequest):
    code = "INVALID_OPERATION"


def fault(error: TidegateError, api: str = "u") -> Response:
    """An error as a SOAP fault, always with HTTP status 500, as in SOAP 1.1 and Salesforce."""
    code = error.code if isinstance(error, EventsError) else "UNKNOWN_EXCEPTION"
    login = isinstance(error, LoginError) and not isinstance(error, InvalidSession)
    kind = "LoginFault" if login else "UnexpectedErrorFault"
    message = _escaped(error.message)
    body = (
        f"<soapenv:Fault><faultcode>sf:{code}</faultcode><faultstring>{code}: {message}</faultstring>"
        f'<detail><sf:{kind} xsi:type="sf:{kind}"><sf:exceptionCode>{code}</sf:exceptionCode>'
        f"<sf:exceptionMessage>{message}</sf:exceptionMessage></sf:{kind}></detail></soapenv:Fault>"
    )
    return _envelope(f'xmlns:sf="urn:fault.{_APIS.get(api, "partner")}.soap.sforce.com"', body, 500)


class SoapFront:
    """``/services/Soap/u/NN.0`` and ``/services/Soap/c/NN.0``: the operations ``login``, ``create``, ``getUserInfo`` and ``logout``."""

    def __init__(self, access: Access, publisher: Publisher) -> None:
        self._access, self._publisher = access, publisher

    def routes(self) -> list[Route]:
        path = "/services/Soap/{api}/{version}"
        return [Route(path + tail, self.call, methods=["POST"]) for tail in ("", "/", "/{org}")]

    async def call(self, request: Request) -> Response:
        """Answer a SOAP request. The body names the operation (clients' SOAPAction headers differ)."""
        api = request.path_params["api"]
        try:
            if api not in _APIS:
                raise ResourceNotFound
            version = check_version(request.path_params["version"])
            body = await request.body()
            root = await self._read(body)
            operation = _operation(root)
            if operation is None:
                raise MalformedXml("The request is not a SOAP envelope with an operation in its body")
            name = xml.local_name(operation)
            if name == "login":
                session = await self._access.login(xml.text_of(operation, "username"), _exact(operation, "password"))
                answer = self._login_result(request, api, version, session)
            elif name in ("create", "getUserInfo", "logout"):
                session = self._session(root)
                if name == "create":
                    answer = await self._create(session, _headers(root), operation)
                elif name == "getUserInfo":
                    answer = f"<getUserInfoResponse><result>{self._user_info(session)}</result></getUserInfoResponse>"
                else:
                    self._access.revoke(session.id)
                    answer = "<logoutResponse/>"
            else:
                raise UnknownOperation(
                    f"No operation available for request {name[:50]}: this service offers login, create, getUserInfo and logout"
                )
        except EventsError as error:
            return fault(error, api)
        return _envelope(f'xmlns="urn:{_APIS[api]}.soap.sforce.com"', answer, 200)

    async def _read(self, body: bytes) -> Element:
        """Read the envelope in pieces, with other requests served in between.

        Large bodies are read only for valid sessions.
        """
        reader = xml.XmlReader(len(body))
        for start in range(0, len(body), _PIECE_BYTES):
            reader.feed(body[start : start + _PIECE_BYTES])
            if start == 0 and len(body) > _PIECE_BYTES:
                self._admit(reader.root, len(body))
            await asyncio.sleep(0)
        return reader.close()

    def _admit(self, root: Element | None, size: int) -> None:
        """Check that the beginning of a large request names a session and an operation that may be large."""
        operation = _operation(root) if root is not None else None
        if root is None or operation is None or xml.local_name(operation) != "create":
            raise MalformedXml(
                f"The SOAP request is {size} bytes: only create may have more than {_PIECE_BYTES}, "
                "with its headers and its name among the first of them"
            )
        self._session(root)

    def _session(self, root: Element) -> Session:
        header = _headers(root).get("SessionHeader")
        return self._access.session(xml.text_of(header, "sessionId") if header is not None else "")

    async def _create(self, session: Session, headers: dict[str, Element], operation: Element) -> str:
        """Publish up to 200 events of any types; all or none if the AllOrNoneHeader says so."""
        all_or_none_header = headers.get("AllOrNoneHeader")
        all_or_none = all_or_none_header is not None and xml.text_of(all_or_none_header, "allOrNone").lower() in (
            "true",
            "1",
        )
        events = [_event(element) for element in xml.children(operation, "sObjects")]
        if len(events) > MAX_RECORDS:
            raise TooManyRecords(
                f"record limit reached. cannot submit more than {MAX_RECORDS} records into this call, "
                f"and {len(events)} came"
            )
        outcomes = await self._publisher.publish_json(events, user=session.user, all_or_none=all_or_none, face="soap")
        results = [_save_result(event, outcome) for event, outcome in zip(events, outcomes, strict=True)]
        return f"<createResponse>{''.join(results)}</createResponse>"

    def _login_result(self, request: Request, api: str, version: str, session: Session) -> str:
        """The elements in Salesforce's order, which some clients rely on."""
        base, org = base_url(request), self._access.org_id
        return (
            "<loginResponse><result>"
            f"<metadataServerUrl>{escape(base)}/services/Soap/m/{version}/{org[:15]}</metadataServerUrl>"
            "<passwordExpired>false</passwordExpired><sandbox>false</sandbox>"
            f"<serverUrl>{escape(base)}/services/Soap/{api}/{version}/{org[:15]}</serverUrl>"
            f"<sessionId>{session.id}</sessionId><userId>{session.user_id}</userId>"
            f"<userInfo>{self._user_info(session)}</userInfo></result></loginResponse>"
        )

    def _user_info(self, session: Session) -> str:
        org, user = self._access.org_id, escape(session.user_name)
        seconds = self._access.session_timeout_ms // 1000
        return (
            "<accessibilityMode>false</accessibilityMode><chatterExternal>false</chatterExternal>"
            "<currencySymbol>$</currencySymbol><orgAttachmentFileSizeLimit>5242880</orgAttachmentFileSizeLimit>"
            "<orgDefaultCurrencyIsoCode>USD</orgDefaultCurrencyIsoCode>"
            "<orgDefaultCurrencyLocale>en_US</orgDefaultCurrencyLocale>"
            "<orgDisallowHtmlAttachments>false</orgDisallowHtmlAttachments>"
            "<orgHasPersonAccounts>false</orgHasPersonAccounts>"
            f"<organizationId>{org}</organizationId><organizationMultiCurrency>false</organizationMultiCurrency>"
            "<organizationName>Tidegate</organizationName><profileId>00eTG0000000001AAA</profileId>"
            f'<roleId xsi:nil="true"/><sessionSecondsValid>{seconds}</sessionSecondsValid>'
            f'<userDefaultCurrencyIsoCode xsi:nil="true"/><userEmail>{user}</userEmail>'
            f"<userFullName>{user}</userFullName><userId>{session.user_id}</userId><userLanguage>en_US</userLanguage>"
            f"<userLocale>en_US</userLocale><userName>{user}</userName><userTimeZone>GMT</userTimeZone>"
            "<userType>Standard</userType><userUiSkin>Theme3</userUiSkin>"
        )


def _headers(root: Element) -> dict[str, Element]:
    header = xml.child(root, "Header")
    return {xml.local_name(element): element for element in header} if header is not None else {}


def _event(element: Element) -> JsonEvent:
    """An event of ``sObjects``: its type is a child (partner) or xsi:type (enterprise), every other child is a field."""
    name = xml.text_of(element, "type") or element.get(f"{{{_XSI}}}type", "").rpartition(":")[2]
    fields: dict[str, str | None] = {}
    for inner in element:
        field = xml.local_name(inner)
        if field in ("type", "Id", "") or len(inner):
            continue
        if field == "fieldsToNull":
            fields[(inner.text or "").strip()] = None
        else:
            fields[field] = None if inner.get(f"{{{_XSI}}}nil") in ("true", "1") else inner.text or ""
    return JsonEvent(name, fields)


def _save_result(event: JsonEvent, outcome: Outcome) -> str:
    """A SaveResult in Salesforce's order."""
    if isinstance(outcome, Published):
        error = f"<message>{escape(outcome.uuid)}</message><statusCode>OPERATION_ENQUEUED</statusCode>"
        made = f"<id>{record_id(outcome.replay_id)}</id><success>true</success>"
    else:
        code, message, names = record_error(event.name, outcome, from_json=False)
        named = "".join(f"<fields>{_escaped(name)}</fields>" for name in names)
        error = f"{named}<message>{_escaped(message)}</message><statusCode>{code}</statusCode>"
        made = '<id xsi:nil="true"/><success>false</success>'
    return f"<result><errors>{error}</errors>{made}</result>"


def _escaped(text: str) -> str:
    """Text for XML, which has no control characters and no lone surrogates."""
    return escape("".join("?" if (c < " " and c not in "\t\n\r") or c in _NOT_XML else c for c in text))


def _operation(root: Element) -> Element | None:
    """The first element in the SOAP body; None if there is none (yet)."""
    body = xml.child(root, "Body") if xml.local_name(root) == "Envelope" else None
    return next(iter(body), None) if body is not None else None


def _exact(element: Element, name: str) -> str:
    """The exact text of a child, including whitespace."""
    element_ = xml.child(element, name)
    return (element_.text or "") if element_ is not None else ""


def _envelope(namespace: str, body: str, status: int) -> Response:
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="{_ENVELOPE}" {namespace} '
        f'xmlns:xsi="{_XSI}"><soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>'
    )
    return Response(text, status, media_type="text/xml; charset=utf-8")

"""SOAP login, as Salesforce's partner (``u``) and enterprise (``c``) APIs have it. The body is read without its dangers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events import xml
from events.access import Access, Session
from events.errors import BadRequest, EventsError, LoginError, MalformedXml, ResourceNotFound
from events.fronts.requests import base_url, check_version
from tidegate.kit.errors import TidegateError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["SoapFront", "fault"]

MAX_BODY_BYTES = 64 * 1024
_APIS = {"u": "partner", "c": "enterprise"}
_ENVELOPE = "http://schemas.xmlsoap.org/soap/envelope/"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"


class UnknownOperation(BadRequest):
    code = "INVALID_OPERATION"


def fault(error: TidegateError, api: str = "u") -> Response:
    """An error as a SOAP fault, always with HTTP status 500, as SOAP 1.1 asks and Salesforce does."""
    code = error.code if isinstance(error, EventsError) else "UNKNOWN_EXCEPTION"
    kind = "LoginFault" if isinstance(error, LoginError) else "UnexpectedErrorFault"
    message = escape(error.message)
    body = (
        f"<soapenv:Fault><faultcode>sf:{code}</faultcode><faultstring>{code}: {message}</faultstring>"
        f'<detail><sf:{kind} xsi:type="sf:{kind}"><sf:exceptionCode>{code}</sf:exceptionCode>'
        f"<sf:exceptionMessage>{message}</sf:exceptionMessage></sf:{kind}></detail></soapenv:Fault>"
    )
    return _envelope(f'xmlns:sf="urn:fault.{_APIS.get(api, "partner")}.soap.sforce.com"', body, 500)


class SoapFront:
    """``/services/Soap/u/NN.0`` and ``/services/Soap/c/NN.0``: the operation ``login``."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        path = "/services/Soap/{api}/{version}"
        return [Route(path + tail, self.call, methods=["POST"]) for tail in ("", "/", "/{org}")]

    async def call(self, request: Request) -> Response:
        """Answer a SOAP request; which operation it is, the body says (clients' SOAPAction headers disagree)."""
        api = request.path_params["api"]
        try:
            if api not in _APIS:
                raise ResourceNotFound
            version = check_version(request.path_params["version"])
            body = await request.body()
            if len(body) > MAX_BODY_BYTES:
                raise MalformedXml(f"The SOAP request is {len(body)} bytes; at most {MAX_BODY_BYTES} are read")
            operation = _operation(xml.parse(body))
            if xml.local_name(operation) != "login":
                name = xml.local_name(operation)[:50]
                raise UnknownOperation(f"No operation available for request {name}: this service offers login")
            session = self._access.login(xml.text_of(operation, "username"), _exact(operation, "password"))
        except EventsError as error:
            return fault(error, api)
        return _envelope(f'xmlns="urn:{_APIS[api]}.soap.sforce.com"', self._result(request, api, version, session), 200)

    def _result(self, request: Request, api: str, version: str, session: Session) -> str:
        """The elements in Salesforce's order: some clients count on it."""
        base, org = base_url(request), self._access.org_id
        user = escape(session.user_name)
        seconds = self._access.session_timeout_ms // 1000
        return (
            "<loginResponse><result>"
            f"<metadataServerUrl>{escape(base)}/services/Soap/m/{version}/{org[:15]}</metadataServerUrl>"
            "<passwordExpired>false</passwordExpired><sandbox>false</sandbox>"
            f"<serverUrl>{escape(base)}/services/Soap/{api}/{version}/{org[:15]}</serverUrl>"
            f"<sessionId>{session.id}</sessionId><userId>{session.user_id}</userId>"
            "<userInfo><accessibilityMode>false</accessibilityMode><chatterExternal>false</chatterExternal>"
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
            "<userType>Standard</userType><userUiSkin>Theme3</userUiSkin></userInfo></result></loginResponse>"
        )


def _operation(root: Element) -> Element:
    """The first element in the SOAP body."""
    body = xml.child(root, "Body") if xml.local_name(root) == "Envelope" else None
    inner = next(iter(body), None) if body is not None else None
    if inner is None:
        raise MalformedXml("The request is not a SOAP envelope with an operation in its body")
    return inner


def _exact(element: Element, name: str) -> str:
    """The text of a child as it is, blanks included."""
    found = xml.child(element, name)
    return (found.text or "") if found is not None else ""


def _envelope(namespace: str, body: str, status: int) -> Response:
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="{_ENVELOPE}" {namespace} '
        f'xmlns:xsi="{_XSI}"><soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>'
    )
    return Response(text, status, media_type="text/xml; charset=utf-8")

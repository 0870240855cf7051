"""Certificate names in Java's format, and the rules that map them to principals."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.security.certificate_names import MappingRules, subject_name

OID = x509.NameOID
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(*parts: tuple[x509.ObjectIdentifier, str]) -> bytes:
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
    now = datetime.datetime(2030, 1, 1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(1))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def test_a_subject_is_written_as_java_writes_it() -> None:
    # the result of X500Principal.getName() of Java 17 for this certificate
    made = certificate(
        (OID.COUNTRY_NAME, "DE"),
        (OID.ORGANIZATION_NAME, ' A, B+C = "x" '),
        (OID.EMAIL_ADDRESS, "a@b.c"),
        (OID.COMMON_NAME, "Jürgen #1"),
    )
    assert subject_name(made) == (r"CN=Jürgen \#1,1.2.840.113549.1.9.1=#16056140622e63,O=\ A\, B\+C \= \"x\"\ ,C=DE")


def test_attributes_of_rfc_2253_have_names() -> None:
    parts = [(OID.DOMAIN_COMPONENT, "d"), (OID.USER_ID, "u"), (OID.STREET_ADDRESS, "s"), (OID.LOCALITY_NAME, "l")]
    parts += [(OID.STATE_OR_PROVINCE_NAME, "st"), (OID.ORGANIZATIONAL_UNIT_NAME, "ou")]
    assert subject_name(certificate(*parts)) == "OU=ou,ST=st,L=l,STREET=s,UID=u,DC=d"
    assert subject_name(certificate()) == ""


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        # Those of Kafka's documentation and tests.
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L", "CN=User,OU=Admin,O=x", "user@admin"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "O=x,cn=me.too", "ME.TOO"),
        ("RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U,DEFAULT", "cn=a,ou=b,dc=c,dc=d", "A@B"),
        ("RULE:^CN=x$/y/ , RULE:^CN=(.*)$/$1$2/L", "CN=Z", "z$2"),
        ("RULE:^CN=(\\d+)$/n$10/", "CN=12", "n120"),
        ("RULE:^CN=(.*)$/\\$1/", "CN=12", "$1"),
        ("RULE:^CN=(a\\/b)$/$1\\/c/", "CN=a/b", "a/b/c"),
        ("RULE:^CN=x$/y/", "CN=other", None),
        ("RULE:^CN=(.*)$/$1/,", "CN=", ""),
        ("", "CN=a", None),
    ],
)
def test_rules_make_principals(rules: str, name: str, principal: str | None) -> None:
    assert MappingRules(rules).principal(name) == principal


@pytest.mark.parametrize(
    "rules", ["default", "DEFAULTx", "RULE:^CN=(.*)$", "RULE:^CN=(.*)$/$1/X", "RULE:^CN=(.*$/$1/", "DEFAULT/L"]
)
def test_an_invalid_mapping_rule_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        MappingRules(rules)


@settings(max_examples=60, deadline=None)
@given(st.text("RULE:DEFAULT^CN=(.*?)$/1,LU\\ ", max_size=40))
def test_any_text_is_rules_or_refused(text: str) -> None:
    try:
        MappingRules(text).principal("CN=a,O=b")
    except ValueError:
        pass


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([OID.COMMON_NAME, OID.ORGANIZATION_NAME, OID.EMAIL_ADDRESS]),
            st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), min_size=1, max_size=20),
        ),
        max_size=4,
    )
)
def test_every_subject_has_a_name(parts: list[tuple[x509.ObjectIdentifier, str]]) -> None:
    try:
        made = certificate(*parts)
    except ValueError:
        return
    assert subject_name(made).count("CN=") >= sum(oid == OID.COMMON_NAME for oid, _ in parts)

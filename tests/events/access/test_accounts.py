from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.access.accounts import Permission, User, read_accounts
from events.access.errors import CannotCreate, CannotRead, InsufficientAccess
from tests.support.accounts import ACCOUNTS, JwtApp
from tidegate.kit.errors import UsageError


def read(folder: Path, told: Any) -> Any:
    path = folder / "accounts.json"
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return read_accounts(path)


def test_users_are_found_by_name_and_id(tmp_path: Path) -> None:
    accounts = read(tmp_path, ACCOUNTS)
    reader = accounts.named("Reader@SHOP")
    assert reader is accounts.with_id(reader.id) is accounts.with_id(reader.id[:15])
    assert accounts.named("other") is None
    assert not list(read_accounts(tmp_path / "none.json").users)


def test_rights_are_patterns_of_names() -> None:
    user = User("u", None, create=("Order_*__e",), read=("big_orders__chn", "Low_Ink?__e"))
    assert user.may_create("ORDER_Shipped__e")
    assert not user.may_create("Big_Orders__chn")
    assert user.may_read("Big_Orders__chn")
    assert user.may_read("Low_Ink2__e")
    assert not user.may_read("Low_Ink__e")
    assert user.may_see("Order_x__e")
    assert not user.may_see("Payment__e")
    with pytest.raises(CannotCreate, match="entity type cannot be inserted: Payment"):
        user.require_create("Payment__e", "Payment")
    with pytest.raises(CannotRead, match="Payment__e"):
        user.require_read("Payment__e")
    with pytest.raises(InsufficientAccess, match="ViewSetup"):
        user.require(Permission.VIEW_SETUP)


def test_a_customizer_sees_the_setup_and_every_event_but_reads_none() -> None:
    user = User("u", None, permissions=frozenset({Permission.CUSTOMIZE}))
    user.require(Permission.VIEW_SETUP)
    assert user.may_see("Order_Shipped__e")
    assert not user.may_read("Order_Shipped__e")


def test_a_certificate_lies_beside_the_file(tmp_path: Path, jwt_app: JwtApp) -> None:
    (tmp_path / "app.pem").write_bytes(jwt_app.certificate.read_bytes())
    accounts = read(tmp_path, {"connectedApps": [{"clientId": "a", "certificate": "app.pem"}]})
    assert accounts.apps["a"].certificate == tmp_path / "app.pem"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("{", "is not JSON"),
        ([], "must be an object whose users"),
        ({"users": {}}, "must be an object whose users"),
        ({"users": [{}]}, "name must be text, not null"),
        ({"users": [{"name": "u", "password": "plain"}]}, "password of user u: it is not a hash"),
        ({"users": [{"name": "u", "reads": []}]}, "'reads' of user u is not known"),
        ({"users": [{"name": "u", "read": "*"}]}, "read must be a list of texts"),
        ({"users": [{"name": "u", "active": 1}]}, "active must be true or false"),
        ({"users": [{"name": "u", "sessionsFrom": "x"}]}, "sessionsFrom of user u"),
        ({"users": [{"name": "u", "permissions": ["All"]}]}, "permission 'All' is not known"),
        ({"users": [{"name": "u"}, {"name": "U"}]}, "two of the users are 'u'"),
        ({"connectedApps": [{"clientId": "a"}, {"clientId": "a"}]}, "two of the connectedApps are 'a'"),
        ({"connectedApps": [{"clientId": "a", "scopes": ["sudo"]}]}, "scope 'sudo' of a is not known"),
        ({"connectedApps": [{"clientId": "a", "certificate": "no.pem"}]}, "cannot read the certificate"),
    ],
)
def test_a_wrong_file_says_where_it_is_wrong(tmp_path: Path, told: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        read(tmp_path, told)
    assert "accounts.json" in str(raised.value)


_VALUE = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2) | st.booleans()
_ENTRY = st.dictionaries(st.sampled_from(["name", "clientId", "read", "password", "active", "scopes"]), _VALUE)


@settings(max_examples=60)
@given(st.fixed_dictionaries({"users": st.lists(_ENTRY, max_size=2), "connectedApps": st.lists(_ENTRY, max_size=2)}))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, told: Any) -> None:
    try:
        read(tmp_path_factory.getbasetemp(), told)
    except UsageError as error:
        assert str(error)

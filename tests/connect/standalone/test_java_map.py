"""The offset file: Java's serialized bytes are read and written, all others refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.server.standalone.java_map import NotAnOffsetFile, dump_map, load_map

# maps with these entries as written by the ObjectOutputStream of Java 17
THREE = (
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249"
    "00097468726573686f6c6478703f4000000000000c77080000001000000003757200025b42acf317f8060854e00200007870"
    "000000007571007e000200000001767571007e0002000000175b2263222c7b2266696c656e616d65223a222f78227d5d7571"
    "007e00020000000f7b22706f736974696f6e223a34327d7571007e0002000000016b7078"
)
EMPTY = (
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249"
    "00097468726573686f6c6478703f400000000000007708000000100000000078"
)
SAME = (
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249"
    "00097468726573686f6c6478703f4000000000000c77080000001000000001757200025b42acf317f8060854e00200007870"
    "000000017371007e000378"
)
"""A map whose key and value are the same array: the second is a reference to the first."""


def test_javas_bytes_are_read_and_written():
    entries = {b"": b"v", b'["c",{"filename":"/x"}]': b'{"position":42}', b"k": None}
    assert load_map(bytes.fromhex(THREE)) == entries
    assert dump_map(load_map(bytes.fromhex(THREE))) == bytes.fromhex(THREE)
    assert load_map(bytes.fromhex(EMPTY)) == {} and dump_map({}) == bytes.fromhex(EMPTY)
    assert load_map(bytes.fromhex(SAME)) == {b"s": b"s"}


@given(st.dictionaries(st.binary(max_size=9), st.none() | st.binary(max_size=9), max_size=30))
def test_a_written_record_is_read_back(entries):
    assert load_map(dump_map(entries)) == entries


@given(st.binary(max_size=40), st.integers(0, 300), st.booleans())
def test_other_bytes_are_refused(noise, position, cut):
    whole = bytes.fromhex(THREE)
    position = min(position, len(whole))
    data = whole[:position] + noise + (b"" if cut else whole[position + len(noise) :])
    try:
        assert all(isinstance(key, bytes) for key in load_map(data))
    except NotAnOffsetFile as error:
        assert "byte" in str(error)


def test_another_map_is_refused_by_its_place():
    with pytest.raises(NotAnOffsetFile, match="byte 0 should begin the header"):
        load_map(b"{}" * 40)

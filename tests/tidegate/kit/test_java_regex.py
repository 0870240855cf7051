"""Regular expressions compared with Java's: the results of ``java.util.regex`` were recorded (see RecordRegex.java)."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tidegate.kit.java_regex import JavaRegex, RegexTooSlow

TEXTS = (
    "", "a", "b", "A", "ab", "abc", "aab", "public.a", "public.orders_1", "1", "a1", "_", ".", ".*", "ä", "Ä", "aä", "a b", " ", "\t",
    "a-b", "-", "x", "z", "a\n", "aa", "bb", "e4", "!", "A1_", "b1", "a.b", "Qa", "\u00a0", "١", "\x1b",
)  # fmt: skip


def recorded() -> list[dict[str, Any]]:
    with gzip.open(Path(__file__).with_name("java_regex.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


CASES = recorded()
REFUSED = {"\\N{DIGIT ONE}", "\\cA", "[a&&]", "\\p{Lower}(?i){2}a"}
"""Patterns of Java's that are refused here, or mean something else."""
WITHOUT_SENSE = re.compile("invalid group reference|nothing to repeat|multiple repeat")
"""Java's patterns that name a missing group (they never match) or repeat nothing are refused here."""
TAKEN = {
    r"[a-\d]",
    r"\S\k<name>(?<name>a|b)](?<!b)",
    r"(?<name>a|b)\s(?i)+\p{Punct}",
    r"1-|\k<name>(?<name>a|b)",
    r"\W(?s)*\x{e4}",
}
"""Patterns that Java refuses, and that are taken here."""
FOLDED = re.compile(r"ä|e4")
"""Without (?u) Java folds the case of ASCII letters only."""


def test_patterns_match_what_java_matches() -> None:
    wrong = []
    for case in CASES:
        pattern, ignore_case = case["pattern"], case["ignore_case"]
        if "error" in case or pattern in REFUSED or FOLDED.search(pattern):
            continue
        try:
            made = JavaRegex(pattern, ignore_case=ignore_case)
        except ValueError as error:
            if not WITHOUT_SENSE.search(str(error)):
                wrong.append(f"{pattern!r} is refused: {error}")
            continue
        for text, full, expected in zip(TEXTS, case["full"], case["found"], strict=True):
            match = made.search(text)
            answer = (made.fullmatch(text) is not None, match and match[0])
            if answer != (full, expected):
                wrong.append(f"{pattern!r} {ignore_case} {text!r}: {answer}, not {(full, expected)}")
                break
    assert not wrong, f"{len(wrong)} of {len(CASES)}\n" + "\n".join(wrong[:50])


def test_patterns_that_java_refuses_are_refused() -> None:
    taken = set()
    for case in CASES:
        if "error" in case:
            try:
                JavaRegex(case["pattern"])
                taken.add(case["pattern"])
            except ValueError:
                pass
    assert taken == TAKEN


def test_everything_that_matches_is_replaced_as_java_does() -> None:
    wrong = []
    for case in CASES:
        pattern, ignore_case = case["pattern"], case["ignore_case"]
        if "error" in case or pattern in REFUSED or FOLDED.search(pattern):
            continue
        if "" in case["found"]:  # after an empty match Java looks one character further, the library does not
            continue
        try:
            made = JavaRegex(pattern, ignore_case=ignore_case)
        except ValueError:
            continue
        grouped = any("|" in text.replace("a|b", "") for text in case["replaced"])
        for text, expected in zip(TEXTS, case["replaced"], strict=True):
            if grouped and made.groups == 0:
                break
            replaced = made.replace_all(text, "<$0|$1>" if made.groups else "<$0>")
            if replaced != expected:
                wrong.append(f"{pattern!r} {text!r}: {replaced!r}, not {expected!r}")
                break
    assert not wrong, f"{len(wrong)} of {len(CASES)}\n" + "\n".join(wrong[:50])


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expected"),
    [
        (r"(?<db>\w+)\.(\w+)", "${db}-$2", "shop.orders", "shop-orders"),
        (r"(\w+)\.(\w+)", r"\$1 $10", "a.b", "$1 a0"),
        (r"a\.(.*)", r"\\$1", "a.b", "\\b"),
    ],
)
def test_replacements_are_javas(pattern: str, replacement: str, text: str, expected: str) -> None:
    assert JavaRegex(pattern).replace_whole(text, replacement) == expected


@pytest.mark.parametrize("replacement", ["$", "$x", "$2", "${db", "${name}", "\\"])
def test_a_replacement_that_names_no_group_is_refused(replacement: str) -> None:
    with pytest.raises(ValueError):
        JavaRegex("(?<db>a)").check_replacement(replacement)


def test_a_match_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(RegexTooSlow, match="nested repetition"):
        JavaRegex("(a|aa)+$").fullmatch("a" * 60 + "b")

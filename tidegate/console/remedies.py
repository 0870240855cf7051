"""The remedy for an error, by its message."""

from __future__ import annotations

import re
from typing import Final

from tidegate.dead_letters.letter_queue import POLLING

__all__ = ["first_sentence", "letter_remedy", "remedy", "rest_of"]

_REMEDIES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (
            (
                r"password authentication failed|access denied for user|invalid_grant|invalid.{0,20}(password|credential)|"
                r"authentication fail|login failed|SASL|401"
            ),
            "Correct the user or the password in the configuration. The connector starts again with the new one.",
        ),
        (
            r"permission denied|not authorized|insufficient.privilege|forbidden|403|accessdenied|has no right",
            "Give the connector's user the right that the message names, then restart the failed tasks.",
        ),
        (
            (
                r"(relation|table|view|database|schema).{0,80}(does not exist|doesn't exist|not found|no such|is missing)|no such table|"
                r"unknown (table|database)|has no table"
            ),
            "Create what the message names, or correct its name in the configuration, then restart the failed tasks.",
        ),
        (
            (
                r"connection refused|could not connect|no route to host|timed? ?out|name or service not known|unreachable|connection reset|"
                r"connection to server|can't connect|failed to establish"
            ),
            "See that the server runs and that the address in the configuration is right. Then restart the failed tasks.",
        ),
        (
            r"certificate|ssl|tls",
            "Correct the trust store or the key store in the configuration, then restart the failed tasks.",
        ),
        (
            r"no space left|disk.{0,20}full|quota exceeded",
            "Free disk space where the message says, then restart the failed tasks.",
        ),
        (
            r"incompatible|compatib",
            "Change the schema so that it stays compatible, or the subject's compatibility level. Then restart the failed tasks.",
        ),
        (
            r"deserializ|unrecognized token|unexpected (character|end)|unknown magic byte|cannot be decoded|not valid json|converter|tolerance exceeded",
            "Use the converter by which the topic was written. To keep bad records aside, set errors.tolerance=all and a dead letter queue.",
        ),
        (
            r"[:;,] (or )?(create|set|use|give|add|check|correct|choose|name|remove|raise|lower|install|see) ",
            "Do what the message says, then restart the failed tasks.",
        ),
        (r"pip install", "Install what the message names into the worker's environment, then restart the worker."),
    )
)
_ELSE: Final = "Read the whole message on the connector's page, correct the cause, then restart the failed tasks."
_LONGEST: Final = 300
_TOLERANCE: Final = re.compile(
    r"Tolerance exceeded in error handler: .*?topic (?P<where>\S+, partition \d+, offset \d+).*?stage [A-Z_]+(?: \([^)]*\))?: (?P<cause>.*)"
)
"""The worker's message for a record that fails the task."""


def remedy(message: str) -> str:
    """A sentence that says what to do."""
    return next((words for pattern, words in _REMEDIES if pattern.search(message)), _ELSE)


def letter_remedy(stage: str, message: str) -> str:
    """The same for a record in a dead letter queue, by the stage that refused it."""
    if stage.endswith("CONVERTER"):
        return "If the record is wrong, edit it and send it back. If the converter is, correct the connector, then send all back."
    if stage == POLLING:
        return "Correct what the source reads and hand it over anew: a file source reads the rows from another file. Only sinks read what is sent back."
    if stage in ("TRANSFORMATION", "PREDICATE"):
        return "If the record is wrong, edit it and send it back. If the transformation is, correct the connector, then send all back."
    return remedy(message)


def first_sentence(message: str) -> str:
    """The first sentence or line of a message, cut where it is long."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "It gave no reason")
    if (matched := _TOLERANCE.match(line)) is not None:
        line = f"{matched['cause']} ({matched['where']})"
    sentence = re.split(r"(?<=[a-z0-9\"')])\. (?=[A-Z])", line, maxsplit=1)[0]
    sentence = sentence[:1].upper() + sentence[1:]
    return sentence if len(sentence) <= _LONGEST else sentence[: _LONGEST - 1] + "…"


def rest_of(message: str) -> str:
    """The whole message where the first sentence leaves out something that matters; otherwise nothing."""
    sentence = first_sentence(message)
    if sentence.endswith("…"):
        return message
    is_said = _TOLERANCE.match(message.strip()) is not None or message.strip().lower() == sentence.lower()
    return "" if is_said or not message else message

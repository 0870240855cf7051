"""The sender of a writing task loses no answer, whenever it comes."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from broker.client import ClientConfig
from pyspark_tidegate.encoding import Outgoing
from pyspark_tidegate.sink import _Sender


class _Late(Future[Any]):
    """Refused in the moment after somebody has asked whether it is done."""

    def done(self) -> bool:
        done = super().done()
        if not done:
            self.set_exception(ValueError("refused"))
        return done


def test_an_answer_that_comes_while_the_answers_are_looked_at_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = _Sender(None, ClientConfig("127.0.0.1:9"), 0)  # type: ignore[arg-type]
    monkeypatch.setattr(sender, "_parts", lambda _: iter(()))
    sender._answers = [_Late()]
    sender.send(Outgoing("t", None, None, None, None, None))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="refused"):
        sender.wait()

"""Our broker on a disk that takes a millisecond: ``python -m bench.broker.slow_disk serve broker ...`` as ``python -m tidegate.cli``."""

from __future__ import annotations

import time
from typing import Final

from broker.log import files, segment
from tidegate.cli import main

_LEAST_S: Final = 0.001


def _slow(fd: int) -> None:
    began = time.perf_counter()
    files.sync_data(fd)
    time.sleep(max(0.0, began + _LEAST_S - time.perf_counter()))


vars(segment)[files.sync_data.__name__] = _slow  # where the log takes it from
main()

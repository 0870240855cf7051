"""Generate the message classes of the Pub/Sub API from ``pubsub_api.proto``: ``python -m events.proto.generate``.

Needs ``grpcio-tools``, a development dependency; the generated files are committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["GENERATED", "generate"]

HERE = Path(__file__).parent
GENERATED = ("pubsub_api_pb2.py", "pubsub_api_pb2.pyi")
_MARK = "# Generated from events/proto/pubsub_api.proto by `python -m events.proto.generate`. Do not edit.\n"


def generate(target: Path) -> None:
    """Write the generated files into ``target``."""
    from grpc_tools import protoc  # type: ignore[import-untyped]

    status = protoc.main(
        ["protoc", f"-I{HERE}", f"--python_out={target}", f"--pyi_out={target}", str(HERE / "pubsub_api.proto")]
    )
    if status:
        raise SystemExit(status)
    for name in GENERATED:
        path = target / name
        path.write_text(_MARK + path.read_text())


if __name__ == "__main__":
    generate(HERE)
    sys.stdout.write(f"wrote {', '.join(GENERATED)} in {HERE}\n")

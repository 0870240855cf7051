"""``tidegate dlq``: the records that sinks could not handle, and why; edited and sent back."""

from tidegate.cli.dead_letters.commands import dlq

__all__ = ["dlq"]

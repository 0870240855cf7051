"""``tidegate connectors``: managing connectors over REST, and writing, previewing and testing them without a worker."""

from tidegate.cli.connectors import applying, authoring, logs, looking, managing, offsets  # noqa: F401 - they add their commands
from tidegate.cli.connectors.files import read_connector
from tidegate.cli.connectors.group import connectors

__all__ = ["connectors", "read_connector"]

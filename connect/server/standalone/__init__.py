"""A standalone worker: offsets in a file, connectors from files, everything else in memory."""

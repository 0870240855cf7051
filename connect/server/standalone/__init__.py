"""A worker that is alone: its offsets are in a file, its connectors in files that it is given, everything else in memory."""

"""Compares what should be the same: two topics, or the tables of a database and their topics."""

"""Bulk loads by Spark: a sink whose job reads ranges of topics on its own and writes files, on any Spark master."""

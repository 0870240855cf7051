"""Rows of database tables and queries as records: the JDBC source, read through Arrow drivers instead of Java's."""

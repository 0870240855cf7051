"""Records as rows of Iceberg tables, without a JVM."""

"""Records as rows of Delta tables, without a JVM."""

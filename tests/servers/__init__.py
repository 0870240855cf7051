"""The real servers that tests compare Tidegate with or connect it to: fetched once, started on loopback, one module each."""

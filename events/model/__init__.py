"""Events as values: definitions, payloads, filters, metadata files. No I/O but reading and writing metadata."""

"""Events as values: definitions, payloads, filters, metadata files. No I/O except reading and writing metadata."""

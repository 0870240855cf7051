"""The event log and its content: records, transactions, definitions, shared state."""

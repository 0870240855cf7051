"""The event log and what is kept in it: records, transactions, definitions, shared state."""

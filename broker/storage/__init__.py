"""The partitions of a running broker: writes, reads, flushes and maintenance."""

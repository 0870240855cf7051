"""The partitions of a running broker: written to and read from, brought to the disk, looked after."""

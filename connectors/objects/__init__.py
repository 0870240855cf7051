"""The parts that sinks to object stores and file systems share: formats, partitioners, rotation, names, and the writer."""

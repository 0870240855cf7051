"""Tidegate: connectors, a partitioned log, an Avro schema registry, platform events and Spark jobs, in one platform."""

"""What sinks to tables without a JVM share: records as rows, routing, evolution of schemas, and commits with offsets."""

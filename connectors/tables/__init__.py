"""Shared by sinks to tables without a JVM: records as rows, routing, evolution of schemas, and commits with offsets."""

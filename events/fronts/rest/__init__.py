"""Salesforce's REST API: sObjects, composite, describe, queries, Tooling and Bulk API 2.0."""

"""Salesforce-style platform events: defined as Avro schemas, stored in the log, served over Salesforce's own protocols."""

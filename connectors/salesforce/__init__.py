"""Salesforce: records into objects, platform events out of and into the bus, of an org or of our own events service."""

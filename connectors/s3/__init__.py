"""Stores records as objects in S3 and compatible stores, through Arrow's client."""

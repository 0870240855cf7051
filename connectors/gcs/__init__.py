"""Stores records as objects in Google Cloud Storage."""

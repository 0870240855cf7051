"""Managed subscriptions: positions stored by the server, and distribution of events to several workers."""

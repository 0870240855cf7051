"""Managed subscriptions: positions that the server keeps, and events dealt out to several workers."""

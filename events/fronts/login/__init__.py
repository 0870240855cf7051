"""Logins over HTTP: OAuth 2, its web server flow, and SOAP."""

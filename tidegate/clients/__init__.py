"""Clients of the faces, below the command line and the console: REST calls, credentials, and summaries of connectors."""

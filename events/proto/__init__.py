"""The wire contract of the Pub/Sub API and its generated message classes."""

"""The wire contract of the Pub/Sub API and the message classes made from it."""

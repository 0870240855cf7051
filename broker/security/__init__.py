"""Identity and permissions of clients."""

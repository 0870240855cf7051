"""Identity of clients, and their permissions."""

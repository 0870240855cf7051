"""Authentication and authorization of the registry's users."""

"""Who may ask the registry, over what, and for which subjects."""

"""Configuration keys for groups: the broker's, and those of single groups."""

"""Configuration keys about groups, of the broker and of single groups."""

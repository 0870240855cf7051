"""Records made up by a schema that says how."""

"""Classic groups: members agree on assignments through their leader."""

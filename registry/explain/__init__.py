"""Explains incompatibilities: which field, which rule, how to fix it. One module per format."""

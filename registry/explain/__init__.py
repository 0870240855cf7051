"""Incompatibilities as a person would tell them: which field, which rule, what would fix it. A module for each format."""

"""Committed offsets of groups of all types: written, read, deleted, expired."""

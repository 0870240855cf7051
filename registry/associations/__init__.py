"""Associations: which resource (a topic) a subject belongs to, and whether it lives and dies with it (Confluent 8)."""

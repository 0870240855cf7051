"""What every component needs and no component owns: typed config keys, errors, the HTTP face, metrics, logs, services.

Nothing here knows a domain word: no topic, no schema, no connector.
"""

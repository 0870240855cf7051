"""The parts that database connectors share: ``jdbc:`` URLs, engines, reflected tables, types, and columns in Connect's
form.
"""

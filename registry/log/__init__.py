"""The schema log: the records of ``_schemas``, replayed at the start and appended by every write; and the election of
the writer.
"""

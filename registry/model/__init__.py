"""The registry's state as values: subjects, versions, contracts, associations, and the records that they are kept in."""

"""The registry's state as values: subjects, versions, contracts, associations, and their records."""

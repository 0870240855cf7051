"""Everything that is configured on a platform, as documents by part and name: no records, no users."""

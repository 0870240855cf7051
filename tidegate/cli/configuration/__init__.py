"""``tidegate export`` and ``import``: everything that is configured on a platform, as files; no records."""

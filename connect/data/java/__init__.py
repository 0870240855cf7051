"""Java's exact text formats: numbers, dates, and Connect's values."""

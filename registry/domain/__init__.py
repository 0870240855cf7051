"""The registry's operations: register, look up, delete, compatibility settings, associations."""

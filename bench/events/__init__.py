"""The events service: publishing and subscribing, measured at one server process."""

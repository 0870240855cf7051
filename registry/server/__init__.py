"""The registry as a service: HTTP routes, users, configuration, assembly."""

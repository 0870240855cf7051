"""The common part of groups whose assignments the coordinator computes: epochs, members, target assignments, records."""

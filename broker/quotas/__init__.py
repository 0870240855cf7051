"""Limits for users, clients and addresses, and the throttle times of those that exceed them."""

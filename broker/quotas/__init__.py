"""Limits on what users, clients and addresses may use, and how long they have to wait who go beyond."""

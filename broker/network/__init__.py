"""Sockets: admits clients, reads frames, writes answers, and dispatches frames to handlers."""

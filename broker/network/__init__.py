"""Sockets: who may connect, frames in, answers out, and from a frame to its handler."""

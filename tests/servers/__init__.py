"""The real servers that Tidegate is compared with or connected to: downloaded once, started on loopback, one module
each.
"""

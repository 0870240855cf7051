"""A history checker for brokers: clients nobody here wrote, faults, a recording of what was said, and rules it must obey.

``plan`` turns a seed into clients and faults, ``run`` carries it out and records a ``history``, ``rules`` judges that. ``disk`` is
what makes power cuts: it notes, inside the broker's process, what has been brought to the disk, and takes the rest away.
``python -m tests.proofs.history --help`` runs one seed, or judges a recorded history again.
"""

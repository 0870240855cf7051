"""Protobuf.

``elements`` are a file's parts; ``cursor``, ``parse`` and ``options`` read text, ``text`` and ``normalize`` write it;
``names`` and ``known`` resolve names; ``changes`` and ``compare`` decide compatibility; ``descriptors`` builds
descriptors.
"""

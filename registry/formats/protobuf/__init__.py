"""Protobuf: a file's parts (``elements``), text to parts (``cursor``, ``parse``, ``options``), parts to text (``text``,
``normalize``), names (``names``, ``known``), what may change (``changes``, ``compare``), descriptors (``descriptors``)."""

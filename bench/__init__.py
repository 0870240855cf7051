"""Benchmarks: us and the originals in one run, interleaved; what counts is the median ratio."""

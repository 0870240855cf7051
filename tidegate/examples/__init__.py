"""The examples that come with Tidegate, and what follows their READMEs.

``tidegate examples`` runs an example on a fresh platform; the tests follow the same pages with the same code.
"""

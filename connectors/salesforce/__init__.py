"""Salesforce connectors: write records to objects, publish and receive platform events, with an org or with our own
events service.
"""

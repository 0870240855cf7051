"""Salesforce's allocations, as far as they are configured: what is counted, and what happens when there is none left."""

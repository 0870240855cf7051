"""Salesforce's allocations, as configured: counters, and refusals when an allocation is used up."""

"""Stores records as blobs in containers of Azure Blob Storage."""

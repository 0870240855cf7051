"""The Streaming API: Bayeux 1.0 over long polling (Salesforce Streaming API Developer Guide)."""

"""The membership of share groups (KIP-932)."""

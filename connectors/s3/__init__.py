"""Records as objects in S3 and what speaks its protocol, through Arrow's client."""

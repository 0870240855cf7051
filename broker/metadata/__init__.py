"""The image of the cluster, and the KRaft log that stores it."""

"""The image of the cluster and the KRaft log it is kept in."""

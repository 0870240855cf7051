"""What groups have in common whose assignments the coordinator computes: epochs, members, target assignments, records."""

"""The parts shared by groups whose assignments the coordinator computes: epochs, members, target assignments, records."""

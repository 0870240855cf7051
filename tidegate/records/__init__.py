"""Records for people: decoded keys and values, positions in a topic, offsets of groups, JSON that keeps all digits."""

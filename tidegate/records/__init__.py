"""Records for people: decoded keys and values, positions in a topic, JSON that keeps all digits."""

"""Dead letters of sinks: the letters in a queue, their causes, which were sent back, and sending them back."""

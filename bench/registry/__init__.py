"""The registry beside Karapace over one broker: requests a second, how long they take, start and memory."""

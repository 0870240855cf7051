"""Several workers as one: membership in a group of type ``connect``, distribution of work, and requests to the leader.

Start with ``protocol`` (the members' messages, in Kafka Connect's format), then ``incremental`` (the assignment), then
``membership`` (its timing). ``forwarding`` forwards requests to the worker that can answer them, ``session_keys`` signs
requests between workers, ``fencing`` fences the producers of earlier tasks.
"""

"""Several workers as one: membership in a group of type ``connect``, who runs what, and the way to the leader.

Start with ``protocol`` (what members tell each other, in Kafka Connect's bytes), then ``incremental`` (who gets what),
then ``membership`` (when). ``forwarding`` carries requests to the worker that can answer them, ``session_keys`` signs
those that workers send each other, ``fencing`` locks out the producers of tasks from before.
"""

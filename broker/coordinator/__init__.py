"""The parts that all coordinators share: the clock, the log of a state topic, answers that wait for it, the namespace
of group ids.

About to change ... read time, timers ``clock.py`` how records of a state topic are written and read ``state_log.py``
(the seam), ``state_topic.py`` in which partition of its topic something is kept ``partition_for`` in ``state_log.py``
answers that wait for the disk ``futures.py`` the records of groups on their way to the log ``journal.py`` one id, one
group, whatever its type ``namespace.py``
"""

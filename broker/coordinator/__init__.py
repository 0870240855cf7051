"""The parts that all coordinators share: the clock, the log of a state topic, answers that wait for it, the namespace
of group ids.

About to change ...                                read
time, timers                                       ``clock.py``
reading and writing records of a state topic       ``state_log.py`` (the seam), ``state_topic.py``
the choice of a partition of a state topic         ``partition_for`` in ``state_log.py``
answers that wait for the disk                     ``futures.py``
writing records of groups to the log               ``journal.py``
one id, one group, whatever its type               ``namespace.py``
"""

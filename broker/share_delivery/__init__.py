"""Delivery to share groups (KIP-932): consumers of one group take records of the same partition, each record one at a time.

A *share-partition* is a partition as one share group sees it: which records are in somebody's hands, which are done, which are to
be delivered again. ``ShareGroups`` holds those of this broker; ``broker.share_coordinator`` keeps what has to last in
``__share_group_state``; ``broker.groups.share`` knows members and assignments.

About to change ...                                   read
what may become of a record                           ``delivery.py``
which records a fetch gets                            ``acquiring.py``
what an acknowledgement does                          ``acknowledging.py``
where a share-partition begins and ends               ``partition.py``
what waits, reads the log and answers                 ``fetching.py``
"""

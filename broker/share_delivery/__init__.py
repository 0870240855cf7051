"""Delivery to share groups (KIP-932): the consumers of a group share a partition's records; each record is with one
consumer at a time.

A *share-partition* is a partition from the view of one share group: which records are acquired, which are done, which
have to be delivered again. ``ShareGroups`` has those of this broker; ``broker.share_coordinator`` stores durable state
in ``__share_group_state``; ``broker.groups.share`` knows members and assignments.

About to change ...                                   read
the states of a record                                ``delivery.py``
which records a fetch acquires                        ``acquiring.py``
the effect of an acknowledgement                      ``acknowledging.py``
where a share-partition begins and ends               ``partition.py``
waiting, reading the log, answering                   ``fetching.py``
"""

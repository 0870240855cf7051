"""Delivery to share groups (KIP-932): the consumers of a group share a partition's records; each record is with one
consumer at a time.

A *share-partition* is a partition from the view of one share group: which records are acquired, which are done, which
have to be delivered again. ``ShareGroups`` has those of this broker; ``broker.share_coordinator`` stores durable state
in ``__share_group_state``; ``broker.groups.share`` knows members and assignments.

About to change ... read what may become of a record ``delivery.py`` which records a fetch gets ``acquiring.py`` what an
acknowledgement does ``acknowledging.py`` where a share-partition begins and ends ``partition.py`` what waits, reads the
log and answers ``fetching.py``
"""

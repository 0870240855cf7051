"""Keys of the connectors that use the Bulk API 2.0, under the names of Confluent's."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import Problem, between, config, key, one_of
from connectors.salesforce.config import WriteConfig

__all__ = ["BulkSinkConfig"]


def _only_one(count: int) -> str | None:
    return None if count == 1 else "must be 1: run one connector for each object"


@config
class BulkSinkConfig(WriteConfig):
    """Bulk API 2.0 sink."""

    objects: int = key(
        "salesforce.object.num",
        default=1,
        check=_only_one,
        doc="How many objects are written: one; its keys may be called salesforce.object1.… too.",
        importance="low",
        group="Object",
    )
    ignore_references: bool = key(
        "salesforce.ignore.reference.fields",
        default=False,
        aliases=("salesforce.object1.ignore.reference.fields",),
        doc="Do not write fields that refer to other records.",
        group="Object",
    )
    skip_relationships: bool = key(
        "skip.relationship.fields",
        default=True,
        aliases=("skip.object1.relationship.fields",),
        check=lambda skip: (
            None if skip else "must be true: records that are found by a field of another are not written here"
        ),
        doc="Leave out structs, such as Account.Key__c.",
        importance="low",
        group="Object",
    )
    batch_rows: int = key(
        "salesforce.batch.size",
        default=10_000,
        check=between(1, 100_000),
        doc="The most records in one job. A job is begun when so many have come, and whenever offsets are committed.",
        group="Object",
    )
    batch_bytes: int = key(
        "salesforce.batch.bytes",
        default=10_000_000,
        check=between(1_000, 100_000_000),
        doc="The most bytes in the file of one job, unless one record is larger; Salesforce takes 100 MB.",
        importance="low",
        group="Object",
    )
    job_timeout_ms: int = key(
        "max.timeout.ms",
        default=200_000,
        check=between(1_000, 280_000),
        doc="For how long a job is waited for at once, in milliseconds; it is waited for again then, nothing is sent twice.",
        group="Object",
    )
    on_error: str = key(
        "behavior.on.api.errors",
        default="fail",
        check=one_of("fail", "log", "ignore"),
        doc="What becomes of a record that Salesforce refuses: errors.* decides (fail), or it is dropped, logged or not.",
        group="Object",
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.object_name.endswith(("__e", "__b")) and self.operation != "insert":
            yield Problem(
                "salesforce.sink.object.operation", f"{self.object_name} takes insert only, not {self.operation}"
            )

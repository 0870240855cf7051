"""Whether a schema was registered for a stream's topics since its query began."""

from __future__ import annotations

from connectors.spark.config import REGISTERED
from connectors.spark.job import Job
from registry.client import NotFound, RegistryClient

__all__ = ["NewestSchemas"]


class NewestSchemas:
    """The ids of the newest schemas of the subjects that the job reads by, where its configuration has no schema for them.

    A record with a new schema is in the log after the schema is registered. So a micro-batch that was planned before ``changed`` was
    asked, and said no, has no such record.
    """

    def __init__(self, job: Job) -> None:
        self._subjects = [
            f"{input_.topic}-{side}"
            for input_ in job.inputs
            for side, format_, schema in (
                ("value", input_.value_format, input_.value_schema),
                ("key", input_.key_format if job.merges and not input_.lookup else "", input_.key_schema),
            )
            if format_ in REGISTERED and not schema
        ]
        self._client = RegistryClient.from_properties(job.registry) if self._subjects else None
        self._known: dict[str, int] = {}

    def look(self) -> None:
        """Take those that there are now: before the query is planned, which asks for them too."""
        self._known = self._newest()

    def changed(self) -> bool:
        return self._newest() != self._known

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _newest(self) -> dict[str, int]:
        ids: dict[str, int] = {}
        for subject in self._subjects:
            assert self._client is not None
            try:
                ids[subject] = self._client.version(subject).id
            except (
                NotFound
            ):  # the plan of the query names it; a subject that was deleted since is read by the ids of its records
                ids[subject] = self._known.get(subject, 0)
        return ids

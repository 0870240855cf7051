"""The registry's errors, with Confluent's error codes.

RegistryError
├── InvalidBody         400     the body of a request is invalid
├── NotFound            404xx   no object with that name, version or id
├── Conflict            4090x   an association prevents it
├── Incompatible        40901   the schema breaks its subject's compatibility level
├── Unprocessable       422xx   the request has to change: schema, version, level, mode, references
└── StoreError          5000x   the schema log failed; retriable if a later attempt may help
"""

from __future__ import annotations

from typing import ClassVar

from tidegate.kit.errors import TidegateError

__all__ = [
    "AssociationFrozen",
    "AssociationNotFound",
    "ConfigNotConfigured",
    "Conflict",
    "ContextNotEmpty",
    "Incompatible",
    "InvalidAssociation",
    "InvalidBody",
    "InvalidCompatibilityLevel",
    "InvalidContext",
    "InvalidMode",
    "InvalidRuleSet",
    "InvalidSchema",
    "InvalidSubject",
    "InvalidVersion",
    "ModeNotConfigured",
    "NoActiveVersion",
    "NotFound",
    "OperationNotPermitted",
    "ReferenceExists",
    "RegistryError",
    "ResourceAssociated",
    "SchemaNotFound",
    "SchemaTooLarge",
    "StoreError",
    "StoreMisconfigured",
    "StoreTimeout",
    "SubjectAssociated",
    "SubjectNotFound",
    "SubjectNotSoftDeleted",
    "SubjectOwned",
    "SubjectSoftDeleted",
    "Unprocessable",
    "VersionNotFound",
    "VersionNotSoftDeleted",
    "VersionSoftDeleted",
]


class RegistryError(TidegateError):
    """Confluent's clients read ``error_code``; its first three digits are the HTTP status."""

    error_code: ClassVar[int] = 500


class InvalidBody(RegistryError):
    """The body of a request is JSON, but a member has the wrong type."""

    http_status = 400
    error_code = 400


class InvalidContext(RegistryError):
    http_status = 400
    error_code = 400

    def __init__(self, context: str) -> None:
        super().__init__(f"Context name '{context}' cannot contain a colon")


class NotFound(RegistryError):
    http_status = 404
    error_code = 404


class SubjectNotFound(NotFound):
    error_code = 40401

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' not found.")


class VersionNotFound(NotFound):
    error_code = 40402

    def __init__(self, version: int) -> None:
        super().__init__(f"Version {version} not found.")


class SchemaNotFound(NotFound):
    error_code = 40403

    def __init__(self, which: int | str | None = None) -> None:
        """``which`` is an id or a guid."""
        super().__init__("Schema not found" if which is None else f"Schema {which} not found")


class SubjectSoftDeleted(NotFound):
    error_code = 40404

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


class SubjectNotSoftDeleted(NotFound):
    error_code = 40405

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was not deleted first before being permanently deleted")


class VersionSoftDeleted(NotFound):
    error_code = 40406

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
        )


class VersionNotSoftDeleted(NotFound):
    error_code = 40407

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
        )


class ConfigNotConfigured(NotFound):
    error_code = 40408

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level compatibility configured")


class ModeNotConfigured(NotFound):
    error_code = 40409

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level mode configured")


class AssociationNotFound(NotFound):
    error_code = 40410

    def __init__(self, resource: str) -> None:
        super().__init__(f"Association for '{resource}' not found.")


class Conflict(RegistryError):
    """The request conflicts with an association."""

    http_status = 409
    error_code = 409


class ResourceAssociated(Conflict):
    error_code = 40903

    def __init__(self, kind: str, resource: str) -> None:
        super().__init__(f"An association of type '{kind}' already exists for resource '{resource}'")


class SubjectAssociated(Conflict):
    error_code = 40904

    def __init__(self, subject: str) -> None:
        super().__init__(f"An association already exists for subject '{subject}'")


class SubjectOwned(Conflict):
    error_code = 40905

    def __init__(self, subject: str) -> None:
        super().__init__(f"A strong association already exists for subject '{subject}'")


class NoActiveVersion(Conflict):
    error_code = 40907

    def __init__(self, subject: str) -> None:
        super().__init__(f"No active (non-deleted) version exists for subject '{subject}'")


class AssociationFrozen(Conflict):
    error_code = 40908

    def __init__(self, kind: str, subject: str) -> None:
        super().__init__(f"The association of type  '{kind}' is frozen for subject '{subject}'")


class Incompatible(RegistryError):
    """``messages`` are Confluent's, one per difference, then the version it was compared with."""

    http_status = 409
    error_code = 40901

    def __init__(self, subject: str, messages: list[str]) -> None:
        super().__init__(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{', '.join(messages)}]"
        )
        self.messages = messages


class Unprocessable(RegistryError):
    http_status = 422
    error_code = 422


class InvalidSchema(Unprocessable):
    error_code = 42201


class InvalidVersion(Unprocessable):
    error_code = 42202

    def __init__(self, version: object) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"'
        )


class InvalidCompatibilityLevel(Unprocessable):
    error_code = 42203

    def __init__(self) -> None:
        super().__init__(
            "Invalid compatibility level. Valid values are none, backward, forward, full, "
            "backward_transitive, forward_transitive, and full_transitive"
        )


class InvalidMode(Unprocessable):
    error_code = 42204

    def __init__(
        self, message: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD."
    ) -> None:
        super().__init__(message)


class OperationNotPermitted(Unprocessable):
    error_code = 42205


class ReferenceExists(Unprocessable):
    error_code = 42206

    def __init__(self, subject: str, version: int | None = None) -> None:
        """Without a version the reference is to some version of the subject."""
        key = subject if version is None else f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
        super().__init__(f"One or more references exist to the schema {key}.")


class InvalidSubject(Unprocessable):
    error_code = 42208

    def __init__(self, subject: str) -> None:
        super().__init__(f"The specified subject '{subject}' is not a valid.")


class SchemaTooLarge(Unprocessable):
    error_code = 42209


class InvalidRuleSet(Unprocessable):
    error_code = 42210


class ContextNotEmpty(Unprocessable):
    error_code = 42211

    def __init__(self, context: str) -> None:
        super().__init__(f"The specified context '{context}' is not empty.")


class InvalidAssociation(Unprocessable):
    error_code = 42212

    def __init__(self, member: str, detail: str) -> None:
        super().__init__(f"The association specified an invalid value for property: '{member}', detail: {detail}")


class StoreError(RegistryError):
    """The log refused a write or cannot be read."""

    error_code = 50001


class StoreTimeout(StoreError):
    """The log did not answer in time: the write may or may not appear later."""

    error_code = 50002
    retriable = True


class StoreMisconfigured(StoreError):
    """The log exists but can't be used as it is: an operator has to change the topic or the settings."""

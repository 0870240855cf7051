"""The query parameters of endpoints. Each has one meaning, whichever endpoint uses it."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "ALIASES",
    "ASSOCIATION_TYPE",
    "CASCADE_LIFECYCLE",
    "CONTEXT",
    "CONTEXT_PREFIX",
    "DEFAULT_TO_GLOBAL",
    "DELETED",
    "DELETED_AS_NEGATIVE",
    "DELETED_ONLY",
    "DRY_RUN",
    "FETCH_MAX_ID",
    "FIND_TAGS",
    "FORCE",
    "FORMAT",
    "INCLUDE_SCHEMAS",
    "KEY",
    "LATEST_ONLY",
    "LIFECYCLE",
    "LIFECYCLES",
    "LIMIT",
    "NORMALIZE",
    "OFFSET",
    "PERMANENT",
    "RECURSIVE",
    "REFERENCE_FORMAT",
    "RESOURCE_TYPE",
    "RULE_TYPE",
    "SUBJECT",
    "SUBJECT_PREFIX",
    "VALUE",
    "VERBOSE",
    "Query",
]


class Query(NamedTuple):
    """One query parameter. ``type`` is bool, int, str or list (of str; repeated)."""

    name: str
    type: type
    doc: str
    default: Any = None


DELETED = Query("deleted", bool, "Whether to include what is softly deleted.", False)
DELETED_ONLY = Query("deletedOnly", bool, "Whether to show only what is softly deleted.", False)
DELETED_AS_NEGATIVE = Query("deletedAsNegative", bool, "Whether to show deleted versions as negative numbers.", False)
PERMANENT = Query("permanent", bool, "Whether to delete for good what is softly deleted already.", False)
NORMALIZE = Query("normalize", bool, "Whether to remove differences that mean nothing before anything else.", False)
FORCE = Query("force", bool, "Whether to do it without the usual check.", False)
RECURSIVE = Query("recursive", bool, "Whether to include the subjects of the context.", False)
VERBOSE = Query("verbose", bool, "Whether to say why a schema is not compatible.", False)
DEFAULT_TO_GLOBAL = Query("defaultToGlobal", bool, "Whether to show what is in force where nothing is set.", False)
LATEST_ONLY = Query("latestOnly", bool, "Whether to show only the latest version of each subject.", False)
ALIASES = Query("aliases", bool, "Whether to find and show subjects by their aliases too.", False)
FETCH_MAX_ID = Query("fetchMaxId", bool, "Whether to say the highest id given out in the context.", False)
SUBJECT = Query("subject", str, "The subject, or the context (`:.ctx:`), in which the id is meant.", "")
SUBJECT_PREFIX = Query("subjectPrefix", str, "What subjects begin with; `:*:` is any context.")
CONTEXT_PREFIX = Query("contextPrefix", str, "What contexts begin with.", "")
FORMAT = Query("format", str, "A form of the schema text: `resolved` (AVRO), `serialized` (PROTOBUF), ...", "")
REFERENCE_FORMAT = Query("referenceFormat", str, "`qualified`: show the context before the subjects of references.", "")
FIND_TAGS = Query("findTags", list, "Tags to look for in the schema; `*` is any.")
RULE_TYPE = Query("ruleType", str, "Show only schemas that have a rule of this type.", "")
KEY = Query("key", list, "Names of properties.")
VALUE = Query("value", list, "Values of the properties, in the same order.")
RESOURCE_TYPE = Query("resourceType", str, "The type of the resource; `topic` is the only one.", "")
ASSOCIATION_TYPE = Query("associationType", list, "Which associations: `key`, `value`; all unless given.")
LIFECYCLE = Query("lifecycle", str, "Which associations: `STRONG` or `WEAK`; all unless given.", "")
LIFECYCLES = Query("lifecycle", list, "Schemas with associations of this kind: `STRONG`, `WEAK`; with none: `NONE`.")
CASCADE_LIFECYCLE = Query("cascadeLifecycle", bool, "Whether to delete for good the subjects that belong to it.", False)
INCLUDE_SCHEMAS = Query("includeSchemas", bool, "Whether to show the latest version of each subject.", False)
DRY_RUN = Query("dryRun", bool, "Whether only to say what would be refused.", False)
CONTEXT = Query("context", str, "The context of subjects that name none.", "")
OFFSET = Query("offset", int, "How many to leave out at the beginning.", 0)
LIMIT = Query("limit", int, "How many to show; as many as there may be unless positive.", -1)

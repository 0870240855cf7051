"""JSON Schema: kinds of schema (``model``), text to kinds (``drafts``, ``modern``), what may change (``changes``, ``compare``)."""

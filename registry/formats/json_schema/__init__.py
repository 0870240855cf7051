"""JSON Schema: the model (``model``), parsing (``drafts``, ``modern``), compatible changes (``changes``, ``compare``)."""

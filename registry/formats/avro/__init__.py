"""Avro: types (``model``), text to types (``parse``), types to text (``text``), resolution rules (``compatibility``)."""

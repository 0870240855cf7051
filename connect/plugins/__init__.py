"""The plugins of a worker: which classes there are under which names (``registry.py``), where they come from (``path.py``),
and the config providers that resolve ``${provider:path:key}`` (``config_providers.py``)."""

"""The plugins of a worker: their classes and names (``registry.py``), their sources (``path.py``), and the config
providers that resolve ``${provider:path:key}`` (``config_providers.py``).
"""

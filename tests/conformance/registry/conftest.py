"""The registry that other makers' clients are tested with: ours, or the one that TIDEGATE_TEST_REGISTRY names.

When it names an original (Confluent's, empty and used for nothing else), a failure is an error in the test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.registry import RegistryThread


@pytest.fixture
def registry_url() -> Iterator[str]:
    """The address of an empty registry."""
    setting = os.environ.get("TIDEGATE_TEST_REGISTRY")
    if setting:
        yield setting
        return
    with RegistryThread() as registry:
        yield registry.url

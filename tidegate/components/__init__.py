"""The components of the platform, one declaration each: its addresses, its service, and its properties under ``tidegate
up``.

``COMPONENTS`` has them in starting order; they stop in reverse order.
"""

from __future__ import annotations

from typing import Final

from tidegate.components.broker import BROKER
from tidegate.components.component import Assembly, Component, Face
from tidegate.components.connect import CONNECT
from tidegate.components.console import CONSOLE
from tidegate.components.events import EVENTS
from tidegate.components.registry import REGISTRY
from tidegate.components.triggers import TRIGGERS

__all__ = ["COMPONENTS", "FACES", "Assembly", "Component", "Face"]

COMPONENTS: Final = {component.name: component for component in (BROKER, REGISTRY, CONNECT, EVENTS, TRIGGERS, CONSOLE)}

FACES: Final = {face.name: face for component in COMPONENTS.values() for face in component.faces}
"""Every face by its name."""

"""Apicurio's Avro converter, over the API of Confluent's registry, which Apicurio offers beside its own.

Source: Apicurio Registry's documentation, "Configuring Kafka serializers/deserializers" (keys ``apicurio.registry.*``) and
"Registry REST API documentation" (``/apis/ccompat/v7``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from connect.api import Problem, config, family
from connect.converters.avro import AvroConverter, AvroConverterConfig

__all__ = ["ApicurioAvroConverter", "ApicurioAvroConverterConfig"]

_PREFIX: Final = "apicurio."
_INSTEAD: Final = {
    "registry.url": "schema.registry.url, with the path /apis/ccompat/v7 in place of Apicurio's own",
    "registry.auto-register": "auto.register.schemas",
    "registry.find-latest": "use.latest.version",
    "registry.auth.username": "basic.auth.user.info",
    "registry.auth.password": "basic.auth.user.info",
    "auth.username": "basic.auth.user.info",
    "auth.password": "basic.auth.user.info",
}


@config
class ApicurioAvroConverterConfig(AvroConverterConfig):
    """AvroConverter's keys.

    Apicurio's own are refused, because they would change where schemas go and which bytes are written.
    """

    own: dict[str, str] = family(
        _PREFIX, doc="Keys of Apicurio's own API, which is not spoken. They are refused with what to give instead."
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        for name in sorted(self.own):
            if name == "registry.as-confluent" and self.own[name].strip().lower() == "true":
                continue  # which is what happens anyway
            instead = f"give {_INSTEAD[name]}" if name in _INSTEAD else "leave it out"
            yield Problem(
                _PREFIX + name,
                f"{_PREFIX}{name} is a key of Apicurio's own API. Records are written as Confluent's converter writes them, and the "
                f"registry is asked by Confluent's API: {instead}",
            )


class ApicurioAvroConverter(AvroConverter):
    """Confluent's framing (``apicurio.registry.as-confluent=true``)."""

    config_class = ApicurioAvroConverterConfig
    config: ApicurioAvroConverterConfig

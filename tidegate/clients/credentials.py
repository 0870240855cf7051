"""A user, as every face asks for one: HTTP, Kafka, the registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import requests

__all__ = ["Credentials"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user, the password, and the file of the CA that signed the servers' certificates."""

    user: str = ""
    password: str = ""
    ca: str = ""

    def enter(self, session: requests.Session) -> None:
        """Make a session log in and trust the CA."""
        if self.user:
            session.auth = (self.user, self.password)
        if self.ca:
            session.verify = self.ca
        session.trust_env = not self.ca  # otherwise REQUESTS_CA_BUNDLE of the environment takes precedence

    @property
    def kafka(self) -> dict[str, str]:
        """Settings of a Kafka client."""
        made: dict[str, str] = {}
        if self.user:
            secret = self.password.replace("\\", "\\\\").replace('"', '\\"')
            module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
            made |= {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f'{module} username="{self.user}" password="{secret}";',
            }
        if self.ca:
            made |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca}
        if made:
            made["security.protocol"] = ("SASL_" if self.user else "") + ("SSL" if self.ca else "PLAINTEXT")
        return made

    @property
    def registry(self) -> dict[str, str]:
        """Settings of a registry client, in addition to its URL."""
        made: dict[str, str] = {}
        if self.user:
            made |= {
                "basic.auth.credentials.source": "USER_INFO",
                "basic.auth.user.info": f"{self.user}:{self.password}",
            }
        if self.ca:
            made |= {"schema.registry.ssl.truststore.type": "PEM", "schema.registry.ssl.truststore.location": self.ca}
        return made

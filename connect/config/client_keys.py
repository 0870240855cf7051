"""Types and importance of the settings of Kafka's producers, consumers and admin clients.

Source: ``ProducerConfig``, ``ConsumerConfig`` and ``AdminClientConfig`` of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import Final

from tidegate.kit.config import Importance, Key, KeyType, between, distinct, matches, one_of

__all__ = ["client_key"]


def client_key(name: str) -> Key | None:
    """A setting of Kafka's clients as a key without a default; None for an unknown name."""
    kind = next((kind for kind, names in _NAMES.items() if name in names), None)
    if kind is None:
        return None
    importance: Importance = next((grade for grade, names in _IMPORTANCE.items() if name in names), "medium")
    check = _CHECKS.get(name) or {KeyType.CLASS: _CLASS_NAME, KeyType.LIST: distinct}.get(kind)
    return Key(name, kind, None, "", importance=importance, display_name=name, width="NONE", check=check)


_CLASS_NAME: Final = matches(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)+", "the name of a class, with its package")
_CHECKS: Final = {
    "sasl.login.refresh.buffer.seconds": between(0, 3600),
    "sasl.login.refresh.min.period.seconds": between(0, 900),
    "sasl.login.refresh.window.factor": between(0.5, 1.0),
    "sasl.login.refresh.window.jitter": between(0.0, 0.25),
    "sasl.oauthbearer.assertion.algorithm": one_of("ES256", "RS256", ignore_case=True),
    "sasl.oauthbearer.assertion.claim.exp.seconds": between(0, 86_400),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": between(0, 3600),
}


_NAMES: Final = {
    KeyType.BOOLEAN: frozenset(
        [
            "allow.auto.create.topics",
            "check.crcs",
            "enable.auto.commit",
            "enable.idempotence",
            "enable.metrics.push",
            "exclude.internal.topics",
            "internal.throw.on.fetch.stable.offset.unsupported",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.ignore.keys",
            "sasl.oauthbearer.assertion.claim.jti.include",
            "sasl.oauthbearer.header.urlencode",
            "transaction.two.phase.commit.enable",
        ]
    ),
    KeyType.CLASS: frozenset(
        [
            "key.deserializer",
            "key.serializer",
            "partitioner.class",
            "sasl.client.callback.handler.class",
            "sasl.login.callback.handler.class",
            "sasl.login.class",
            "sasl.oauthbearer.jwt.retriever.class",
            "sasl.oauthbearer.jwt.validator.class",
            "ssl.engine.factory.class",
            "value.deserializer",
            "value.serializer",
        ]
    ),
    KeyType.DOUBLE: frozenset(
        [
            "sasl.kerberos.ticket.renew.jitter",
            "sasl.kerberos.ticket.renew.window.factor",
            "sasl.login.refresh.window.factor",
            "sasl.login.refresh.window.jitter",
        ]
    ),
    KeyType.INT: frozenset(
        [
            "auto.commit.interval.ms",
            "batch.size",
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.zstd.level",
            "default.api.timeout.ms",
            "delivery.timeout.ms",
            "fetch.max.bytes",
            "fetch.max.wait.ms",
            "fetch.min.bytes",
            "heartbeat.interval.ms",
            "max.in.flight.requests.per.connection",
            "max.partition.fetch.bytes",
            "max.poll.interval.ms",
            "max.poll.records",
            "max.request.size",
            "metrics.num.samples",
            "receive.buffer.bytes",
            "request.timeout.ms",
            "retries",
            "sasl.login.connect.timeout.ms",
            "sasl.login.read.timeout.ms",
            "sasl.oauthbearer.assertion.claim.exp.seconds",
            "sasl.oauthbearer.assertion.claim.nbf.seconds",
            "sasl.oauthbearer.clock.skew.seconds",
            "send.buffer.bytes",
            "session.timeout.ms",
            "transaction.timeout.ms",
        ]
    ),
    KeyType.LIST: frozenset(
        [
            "bootstrap.controllers",
            "bootstrap.servers",
            "config.providers",
            "interceptor.classes",
            "metric.reporters",
            "partition.assignment.strategy",
            "sasl.oauthbearer.expected.audience",
            "ssl.cipher.suites",
            "ssl.enabled.protocols",
        ]
    ),
    KeyType.LONG: frozenset(
        [
            "buffer.memory",
            "connections.max.idle.ms",
            "linger.ms",
            "max.block.ms",
            "metadata.max.age.ms",
            "metadata.max.idle.ms",
            "metadata.recovery.rebootstrap.trigger.ms",
            "metrics.sample.window.ms",
            "partitioner.availability.timeout.ms",
            "reconnect.backoff.max.ms",
            "reconnect.backoff.ms",
            "retry.backoff.max.ms",
            "retry.backoff.ms",
            "sasl.kerberos.min.time.before.relogin",
            "sasl.login.retry.backoff.max.ms",
            "sasl.login.retry.backoff.ms",
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            "socket.connection.setup.timeout.max.ms",
            "socket.connection.setup.timeout.ms",
        ]
    ),
    KeyType.PASSWORD: frozenset(
        [
            "sasl.jaas.config",
            "sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.oauthbearer.client.credentials.client.secret",
            "ssl.key.password",
            "ssl.keystore.certificate.chain",
            "ssl.keystore.key",
            "ssl.keystore.password",
            "ssl.truststore.certificates",
            "ssl.truststore.password",
        ]
    ),
    KeyType.SHORT: frozenset(["sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds"]),
    KeyType.STRING: frozenset(
        [
            "acks",
            "auto.offset.reset",
            "client.dns.lookup",
            "client.id",
            "client.rack",
            "compression.type",
            "group.id",
            "group.instance.id",
            "group.protocol",
            "group.remote.assignor",
            "isolation.level",
            "metadata.recovery.strategy",
            "metrics.recording.level",
            "sasl.kerberos.kinit.cmd",
            "sasl.kerberos.service.name",
            "sasl.mechanism",
            "sasl.oauthbearer.assertion.algorithm",
            "sasl.oauthbearer.assertion.claim.aud",
            "sasl.oauthbearer.assertion.claim.iss",
            "sasl.oauthbearer.assertion.claim.sub",
            "sasl.oauthbearer.assertion.file",
            "sasl.oauthbearer.assertion.private.key.file",
            "sasl.oauthbearer.assertion.template.file",
            "sasl.oauthbearer.client.credentials.client.id",
            "sasl.oauthbearer.expected.issuer",
            "sasl.oauthbearer.jwks.endpoint.url",
            "sasl.oauthbearer.scope",
            "sasl.oauthbearer.scope.claim.name",
            "sasl.oauthbearer.sub.claim.name",
            "sasl.oauthbearer.token.endpoint.url",
            "security.protocol",
            "security.providers",
            "share.acknowledgement.mode",
            "share.acquire.mode",
            "ssl.endpoint.identification.algorithm",
            "ssl.keymanager.algorithm",
            "ssl.keystore.location",
            "ssl.keystore.type",
            "ssl.protocol",
            "ssl.provider",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
            "ssl.truststore.location",
            "ssl.truststore.type",
            "transactional.id",
        ]
    ),
}
_IMPORTANCE: Final[dict[Importance, frozenset[str]]] = {
    "high": frozenset(
        [
            "bootstrap.controllers",
            "bootstrap.servers",
            "buffer.memory",
            "compression.type",
            "fetch.min.bytes",
            "group.id",
            "group.protocol",
            "heartbeat.interval.ms",
            "key.deserializer",
            "key.serializer",
            "max.partition.fetch.bytes",
            "retries",
            "sasl.oauthbearer.expected.audience",
            "sasl.oauthbearer.expected.issuer",
            "session.timeout.ms",
            "ssl.key.password",
            "ssl.keystore.certificate.chain",
            "ssl.keystore.key",
            "ssl.keystore.location",
            "ssl.keystore.password",
            "ssl.truststore.certificates",
            "ssl.truststore.location",
            "ssl.truststore.password",
            "value.deserializer",
            "value.serializer",
        ]
    ),
    "low": frozenset(
        [
            "acks",
            "auto.commit.interval.ms",
            "check.crcs",
            "client.rack",
            "config.providers",
            "enable.idempotence",
            "enable.metrics.push",
            "fetch.max.wait.ms",
            "interceptor.classes",
            "internal.throw.on.fetch.stable.offset.unsupported",
            "max.in.flight.requests.per.connection",
            "metadata.max.age.ms",
            "metadata.max.idle.ms",
            "metadata.recovery.rebootstrap.trigger.ms",
            "metadata.recovery.strategy",
            "metric.reporters",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
            "reconnect.backoff.max.ms",
            "reconnect.backoff.ms",
            "retry.backoff.max.ms",
            "retry.backoff.ms",
            "sasl.kerberos.kinit.cmd",
            "sasl.kerberos.min.time.before.relogin",
            "sasl.kerberos.ticket.renew.jitter",
            "sasl.kerberos.ticket.renew.window.factor",
            "sasl.login.connect.timeout.ms",
            "sasl.login.read.timeout.ms",
            "sasl.login.refresh.buffer.seconds",
            "sasl.login.refresh.min.period.seconds",
            "sasl.login.refresh.window.factor",
            "sasl.login.refresh.window.jitter",
            "sasl.login.retry.backoff.max.ms",
            "sasl.login.retry.backoff.ms",
            "sasl.oauthbearer.assertion.claim.exp.seconds",
            "sasl.oauthbearer.assertion.claim.nbf.seconds",
            "sasl.oauthbearer.clock.skew.seconds",
            "sasl.oauthbearer.header.urlencode",
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            "sasl.oauthbearer.scope.claim.name",
            "sasl.oauthbearer.sub.claim.name",
            "security.providers",
            "ssl.cipher.suites",
            "ssl.endpoint.identification.algorithm",
            "ssl.engine.factory.class",
            "ssl.keymanager.algorithm",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
            "transaction.timeout.ms",
            "transaction.two.phase.commit.enable",
            "transactional.id",
        ]
    ),
}

"""The keys of Apache Kafka's brokers that this broker ignores, each with the reason, and those that it refuses.

Ignored keys are stored and shown as in Kafka, so that its configuration files and tools work unchanged. Refused keys
would change permissions or locations, so that ignoring them silently would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["REFUSED", "UNUSED", "refusal", "why_unused"]

_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "One broker replicates nothing.": (
        "auto.leader.rebalance.enable",
        "follower.fetch.last.tiered.offset.enable",
        "leader.imbalance.check.interval.seconds",
        "num.replica.fetchers",
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.lag.time.max.ms",
        "replica.selector.class",
        "replica.socket.receive.buffer.bytes",
        "replica.socket.timeout.ms",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
    ),
    "There is one broker, so the broker's own topics have one replica.": (
        "offsets.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    ),
    "The broker is its own controller, in one process: nobody votes, registers, or sends heartbeats.": (
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "controlled.shutdown.enable",
        "controller.quorum.append.linger.ms",
        "controller.quorum.auto.join.enable",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.election.backoff.max.ms",
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.max.bytes",
        "controller.quorum.fetch.snapshot.max.bytes",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.request.timeout.ms",
        "controller.quorum.retry.backoff.ms",
        "controller.quorum.voters",
        "controller.socket.timeout.ms",
        "early.start.listeners",
        "initial.broker.registration.timeout.ms",
        "log.dir.failure.timeout.ms",
        "metadata.max.idle.interval.ms",
        "request.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    ),
    "One thread does everything, and hands to others what waits for a disk.": (
        "background.threads",
        "group.coordinator.background.threads",
        "group.coordinator.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "share.coordinator.threads",
    ),
    "Requests are handled as they are read, without a queue; a connection with 128 that wait, or answers that it does not read, is not read from.": (
        "queued.max.request.bytes",
        "queued.max.requests",
    ),
    "What waits is taken out of its lists when it ends, so there is nothing to purge.": (
        "delete.records.purgatory.purge.interval.requests",
        "fetch.purgatory.purge.interval.requests",
        "producer.purgatory.purge.interval.requests",
        "share.fetch.purgatory.purge.interval.requests",
    ),
    "A coordinator's records are written at once, and all that came together share a flush; who asked is answered when the disk has them, or refuses.": (
        "group.coordinator.append.linger.ms",
        "group.coordinator.cached.buffer.max.bytes",
        "offsets.commit.timeout.ms",
        "share.coordinator.append.linger.ms",
        "share.coordinator.cached.buffer.max.bytes",
        "share.coordinator.write.timeout.ms",
    ),
    "A coordinator reads its topic batch by batch, from the page cache.": (
        "offsets.load.buffer.size",
        "share.coordinator.load.buffer.size",
        "transaction.state.log.load.buffer.size",
    ),
    "Partitions and transaction coordinator are in one process and ask each other directly.": (
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
    ),
    "Compaction reads through the page cache and has no buffers of its own.": (
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
    ),
    "The high watermark is the end of the log, so its file is only for Apache Kafka to read, and written with the other checkpoints.": (
        "replica.high.watermark.checkpoint.interval.ms",
    ),
    "Moves between directories go at the speed of the disks; there is no quota for them.": (
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
    ),
    "Metrics are at `metrics.listen` for Prometheus; reporters are Java.": (
        "kafka.metrics.polling.interval.secs",
        "kafka.metrics.reporters",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    "There is no tiered storage.": (
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.copy.quota.window.num",
        "remote.log.manager.copy.quota.window.size.seconds",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.fetch.quota.window.num",
        "remote.log.manager.fetch.quota.window.size.seconds",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.manager.task.interval.ms",
        "remote.log.manager.thread.pool.size",
        "remote.log.metadata.custom.metadata.max.bytes",
        "remote.log.metadata.manager.class.name",
        "remote.log.metadata.manager.class.path",
        "remote.log.metadata.manager.impl.prefix",
        "remote.log.metadata.manager.listener.name",
        "remote.log.reader.max.pending.tasks",
        "remote.log.reader.threads",
        "remote.log.storage.manager.class.name",
        "remote.log.storage.manager.class.path",
        "remote.log.storage.manager.impl.prefix",
    ),
    "Kerberos (GSSAPI) is not served.": (
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
    ),
    "The broker is nobody's client: it does not log in to others.": (
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.endpoint.identification.algorithm",
    ),
    "OpenSSL does it here; these speak of Java's.": (
        "security.providers",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ),
    "A key store is taken that can be read, whatever name its certificate has.": (
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
    ),
}

UNUSED: Final[Mapping[str, str]] = MappingProxyType({key: reason for reason, keys in _REASONS.items() for key in keys})
"""Why a key has no effect."""

_POLICY: Final = "its class is Java and cannot be asked here, so what it forbids would be allowed"
REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "alter.config.policy.class.name": _POLICY,
        "client.quota.callback.class": "its class is Java: quotas are set with kafka-configs",
        "config.providers": "values are not looked up elsewhere here; write them out, or have them put in before the start",
        "create.topic.policy.class.name": _POLICY,
        "process.roles": "name broker: there are no controllers without one here",
        "remote.log.storage.system.enable": "tiered storage is not served here",
        "sasl.oauthbearer.jwt.validator.class": "its class is Java: sasl.server.callback.handler.class says how tokens are verified",
        "ssl.engine.factory.class": "its class is Java: TLS is configured by the other ssl keys",
    }
)
"""Keys that must keep Kafka's default, and why."""

_HARMLESS: Final[Mapping[str, tuple[str, ...]]] = {
    "process.roles": ("broker", "broker,controller", "controller,broker"),
    "remote.log.storage.system.enable": ("false",),
    "sasl.oauthbearer.jwt.validator.class": (
        "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    ),
}


def refusal(key: str, value: str) -> str | None:
    """Why a broker can't accept this value, also for a single listener (``listener.name.…``); None if it can."""
    name = next(
        (text for text in REFUSED if key == text or (key.startswith("listener.name.") and key.endswith(f".{text}"))), ""
    )
    if not name or not value.strip():
        return None
    if value.replace(" ", "").lower() in map(str.lower, _HARMLESS.get(name, ())):
        return None
    return f"Invalid value {value} for configuration {key}: {REFUSED[name]}"


def why_unused(key: str) -> str:
    """The description of a key that this broker does not declare."""
    if key in REFUSED:
        return f"Not served: {REFUSED[key]}."
    return (
        f"Kept and shown, without effect. {UNUSED.get(key, 'A key that neither Apache Kafka nor this broker knows.')}"
    )

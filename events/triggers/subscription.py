"""One subscription of a trigger: reads its event's topic, calls the function batch by batch, and commits the position.

The position is a consumer group's offset. The group's only partition goes to one process, so that others can stand by.
The position moves only past events that a call has finished, whatever happens in between.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from broker.client import BatchConsumer, ClientConfig, KafkaRecord, TopicPartition
from events.errors import NotThere, UndecodablePayload
from events.model.changes.schemas import ChangeEventSchema
from events.model.filters import InvalidFilter
from events.model.payloads import unframe
from events.store.catalog import Catalog
from events.triggers.api import EVENT_UUID, RetryableException, Trigger, TriggerContext, TriggerEvent
from events.triggers.calls import Mark, call
from events.triggers.config import TriggersConfig
from events.triggers.filtering import Passing, filterable
from events.triggers.outputs import Outputs
from events.triggers.states import Status, SubscriptionState, TriggerStates
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["Subscription"]

logger = get_logger(__name__)

_DAY_MS: Final = 86_400_000
_PAUSE_S: Final = 1.0
_LOOK_MS: Final = 500
_USER_ID: Final = "005TG0000000000AAA"
"""CreatedById of triggers' events: Salesforce's "Automated Process" user."""


class Subscription:
    """Runs from ``run`` until its task is cancelled."""

    def __init__(
        self,
        trigger: Trigger,
        state: SubscriptionState,
        *,
        config: TriggersConfig,
        client: ClientConfig,
        catalog: Catalog,
        states: TriggerStates,
        instance: str,
    ) -> None:
        self._trigger, self.state, self._config, self._states = trigger, state, config, states
        self._catalog, self.stopping, self.ended = catalog, False, asyncio.Event()
        self.ended.set()
        self._partition = TopicPartition(trigger.event, 0)
        reading = {
            "group.id": state.group,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "max.poll.interval.ms": str(_DAY_MS),
            "group.instance.id": f"{instance}-{state.name}",  # a restarted process keeps its partitions
            "session.timeout.ms": str(config.session_timeout_ms),
            "heartbeat.interval.ms": str(max(1, config.session_timeout_ms // 3)),
        }
        self._reading = client.with_properties(reading)
        self._outputs = Outputs(client, catalog, state.group, _USER_ID)
        self._mark = Mark(Path(config.data_dir) / "running", state.name)
        self._events: list[TriggerEvent] = []
        self._next = -1
        self._tenure, self._settled = 0, -1

    async def run(self) -> None:
        """Work until cancelled; waits while a broker or a registry is unavailable."""
        while True:
            try:
                async with BatchConsumer(self._reading) as consumer:
                    self._forget()
                    await consumer.subscribe([self._trigger.event], listener=self)
                    while True:
                        await self._step(consumer)
            except TidegateError as error:
                logger.warning(
                    "a trigger waits for the log or the registry", trigger=self.state.name, reason=str(error)
                )
                await asyncio.sleep(_PAUSE_S)
            except Exception:
                logger.exception("a trigger's subscription broke; starting it again", trigger=self.state.name)
                await asyncio.sleep(_PAUSE_S)
            finally:
                await self._outputs.stop()

    async def on_revoked(self, partitions: set[TopicPartition]) -> None:
        self._forget()

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        self._forget()

    def _forget(self) -> None:
        """Drop the positions in memory: another process has them now, or they will be read again."""
        self._tenure += 1
        self._events, self._next = [], -1

    async def _step(self, consumer: BatchConsumer) -> None:
        if self._partition not in consumer.assignment():
            await asyncio.sleep(0.05)
            return
        if self._settled != self._tenure:
            await self._begin_tenure(consumer)
        await self._obey(consumer)
        if self.state.status in (Status.ERROR, Status.SUSPENDED):
            await self._states.wait_for_command(self._trigger.name, self.state.obeyed, None)
            return
        await self._fill(consumer)
        if not self._events or self.stopping:
            return
        batch = self._events[: self._trigger.batch_size]
        left_mark = self._mark.read()
        if left_mark is not None and left_mark == batch[0].replay_id:
            self._mark.clear()
            await self._failed("the process ended while the trigger ran")
            return
        await self._call(consumer, batch)

    async def _begin_tenure(self, consumer: BatchConsumer) -> None:
        """Begin a tenure: end transactions of the previous one, then read the position.

        A committed transaction may not have reached the group's offsets yet. A producer with the same transactional id
        starts only when it has, and fences all earlier ones.
        """
        tenure = self._tenure
        await self._outputs.renew()
        position = await consumer.committed(self._partition)
        if position is not None:
            await consumer.seek(self._partition, position)
        self._events, self._next, self._settled = [], -1, tenure

    async def _obey(self, consumer: BatchConsumer) -> None:
        command = await self._states.command(self._trigger.name)
        if command is None or command.id == self.state.obeyed:
            return
        if command.status == Status.RUNNING and command.replay == "latest":
            await consumer.seek_to_end(self._partition)
            await consumer.commit({self._partition: await consumer.position(self._partition)})
            self._forget()
        await self._note(status=command.status, retries=0, last_error="", obeyed=command.id)

    async def _fill(self, consumer: BatchConsumer) -> None:
        """Collect available events, up to a batch. Waits only for the first one."""
        while len(self._events) < self._trigger.batch_size:
            tenure = self._tenure
            fetched = await consumer.fetch(0 if self._events else _LOOK_MS)
            if not fetched or tenure != self._tenure:
                return
            for part in fetched:
                if self._next >= 0 and part.offset > self._next:
                    logger.error(
                        "events were deleted before a trigger had them",
                        trigger=self.state.name,
                        first=self._next,
                        last=part.offset - 1,
                    )
                try:
                    events = await self._decoded(part.records())
                except InvalidFilter as error:
                    await self._note(status=Status.ERROR, last_error=str(error))
                    raise  # fetched events are fetched again from the committed position
                if tenure != self._tenure:
                    return
                self._events += events
                self._next = part.next_offset
            if not self._events:
                await consumer.commit(
                    {self._partition: self._next}
                )  # all of them were for other partitions of the trigger

    async def _decoded(self, records: Iterable[KafkaRecord]) -> list[TriggerEvent]:
        events = []
        passing = Passing(self._trigger.filter)
        for record in records:
            try:
                if record.value is None:
                    raise UndecodablePayload("The record has no value")
                schema_id, payload = unframe(record.value)
                schema = await self._catalog.any_schema(schema_id)
                fields = schema.to_json(payload, timestamp_ms=record.timestamp_ms)
                if isinstance(schema, ChangeEventSchema):
                    fields = dict.fromkeys(field.name for field in schema.fields) | fields
            except (UndecodablePayload, NotThere) as error:
                logger.warning(
                    "a record in an event topic is not an event",
                    topic=record.topic,
                    offset=record.offset,
                    error=str(error),
                )
                continue
            key = (record.key or b"").decode(errors="replace")
            event = TriggerEvent(schema.name, record.offset, key, fields)
            if self._is_ours(event):
                events.append(event)
                passing.add(schema, payload)
        if not events or not self._trigger.filter:
            return events
        return passing.of(events, await filterable(self._catalog, self._trigger.event))

    def _is_ours(self, event: TriggerEvent) -> bool:
        if self.state.parts == 1:
            return True
        field = self._trigger.partition_key
        value = event.uuid if field == EVENT_UUID else event.fields.get(field)
        text = json.dumps(value, sort_keys=True, default=str)
        return zlib.crc32(text.encode()) % self.state.parts == self.state.part

    async def _call(self, consumer: BatchConsumer, batch: list[TriggerEvent]) -> None:
        context = TriggerContext(self._trigger, batch, self.state.retries)
        context.last_error = self.state.last_error
        tenure = self._tenure
        self._mark.set(batch[0].replay_id)
        self.ended.clear()
        try:
            error = await call(self._trigger, batch, context)
        finally:
            self.ended.set()
        self._mark.clear()
        if tenure != self._tenure:
            logger.warning("a trigger's batch went to another process while it ran", trigger=self.state.name)
            return
        checkpoint = context.resume_checkpoint
        if error is None and checkpoint is None:
            outputs, done = context.outputs, batch[-1].replay_id
        elif checkpoint is not None and not isinstance(error, RetryableException):
            outputs, done = (context.outputs_of_checkpoint if error else context.outputs), checkpoint
        else:
            await self._failed(_shown(error))
            return
        rest = self._events[len(batch) :] if done == batch[-1].replay_id else None
        if rest is None:
            rest = [event for event in self._events if event.replay_id > done]
        whole = not rest and done == batch[-1].replay_id
        position = self._next if whole else done + 1
        try:
            if outputs:
                await self._outputs.write(outputs, self._partition, position)
            else:
                await consumer.commit({self._partition: position})
        except TidegateError as failure:
            if failure.retriable:
                raise  # the log is unavailable, or another process has the group: continue at the committed position
            await self._failed(str(failure))
            self._forget()
            return
        if tenure != self._tenure:
            return
        self._events = rest
        if self.state.retries or self.state.status != Status.RUNNING:
            await self._note(status=Status.RUNNING, retries=0)
        if error is not None:
            logger.warning("a trigger resumes after its checkpoint", trigger=self.state.name, error=_shown(error))

    async def _failed(self, reason: str) -> None:
        retries = self.state.retries
        if retries >= self._config.retries:
            logger.error("a trigger is in the Error state", trigger=self.state.name, error=reason, retries=retries)
            await self._note(status=Status.ERROR, last_error=reason)
            return
        pause_ms = min(self._config.retry_backoff_ms * 2**retries, self._config.retry_backoff_max_ms)
        logger.warning(
            "a trigger failed and is tried again",
            trigger=self.state.name,
            error=reason,
            retry=retries + 1,
            in_ms=pause_ms,
        )
        await self._note(status=Status.RETRYING, retries=retries + 1, last_error=reason)
        await self._states.wait_for_command(self._trigger.name, self.state.obeyed, pause_ms / 1000)

    async def _note(self, **changes: object) -> None:
        changed_ms = time.time_ns() // 1_000_000
        self.state = replace(self.state, changed_ms=changed_ms, **changes)  # type: ignore[arg-type]
        await self._states.put_state(self.state)


def _shown(error: BaseException | None) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= 1000 else text[:997] + "..."

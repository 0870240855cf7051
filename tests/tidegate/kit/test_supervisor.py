"""The supervisor, over real processes."""

import asyncio
import contextlib
import os
import signal
import sys

import pytest

from tidegate.kit import supervisor as module
from tidegate.kit.supervisor import ChildFailed, ChildSpec, Supervisor

CHILD = """
import asyncio, sys
from pathlib import Path
from tidegate.kit import service

class Toy:
    async def start(self):
        return {"toy": "127.0.0.1:1"}
    async def stop(self):
        Path(sys.argv[1]).write_text("stopped in order")

sys.exit(service.run(Toy(), ready_file=Path(sys.argv[sys.argv.index("--ready-file") + 1]), stop_with_stdin=True))
"""


def child(tmp_path, name="toy", code=CHILD):
    return ChildSpec(name, [sys.executable, "-c", code, str(tmp_path / f"{name}.ended")])


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def supervised(tmp_path, *specs):
    return Supervisor(specs or [child(tmp_path)], run_dir=tmp_path / "run", log_dir=tmp_path / "logs")


def test_a_child_that_is_killed_is_started_again(tmp_path):
    async def run():
        supervisor = supervised(tmp_path)
        await supervisor.start()
        (state,) = supervisor.states
        first = state.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: state.pid not in (None, first) and state.ready)
        assert state.restarts == 1 and state.addresses == {"toy": "127.0.0.1:1"}
        await supervisor.stop()
        assert (tmp_path / "toy.ended").read_text() == "stopped in order"

    asyncio.run(run())


def test_a_child_is_restarted_on_request_in_order_and_without_a_pause(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_BACKOFF_S", 1e6)  # an unasked restart would not come
    monkeypatch.setattr(module, "_LAST_BACKOFF_S", 1e6)

    async def run():
        supervisor = supervised(tmp_path, child(tmp_path), child(tmp_path, "other"))
        await supervisor.start()
        state, other = supervisor.states
        for _ in range(2):
            first, others = state.pid, other.pid
            module.request_restart(tmp_path / "run", "toy")
            await until(lambda first=first: state.pid not in (None, first) and state.ready)
            assert (tmp_path / "toy.ended").read_text() == "stopped in order"
            (tmp_path / "toy.ended").unlink()
            assert (state.restarts, other.pid) == (0, others)
        await supervisor.stop()

    asyncio.run(run())


def test_a_request_ends_a_child_that_ignores_sigterm_and_one_that_is_old_ends_none(tmp_path):
    deaf = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(sys.argv[sys.argv.index("--ready-file") + 1]).write_text('{"addresses": {}}')
while True:
    time.sleep(1000)
"""

    async def run():
        (tmp_path / "run").mkdir()
        module.request_restart(tmp_path / "run", "toy")
        spec = child(tmp_path, code=deaf)
        supervisor = supervised(tmp_path, ChildSpec(spec.name, spec.command, stop_timeout_s=0.1, watchdog_s=0))
        await supervisor.start()
        (state,) = supervisor.states
        first = state.pid
        assert not (tmp_path / "run" / "toy.restart").exists()
        module.request_restart(tmp_path / "run", "toy")
        await until(lambda: state.pid not in (None, first) and state.ready)
        await supervisor.stop()

    asyncio.run(run())


def test_a_child_that_fails_at_its_start_is_told_with_its_last_words(tmp_path):
    async def run():
        supervisor = supervised(tmp_path, child(tmp_path, "bad", "import sys; sys.exit('error: port taken')"))
        with pytest.raises(ChildFailed, match="bad ended with status 1 at its start: port taken"):
            await supervisor.start()
        await supervisor.stop()

    asyncio.run(run())


def test_a_stop_while_a_child_is_being_made_does_not_wait_for_it(tmp_path, monkeypatch):
    async def run():
        made, go_on = asyncio.Event(), asyncio.Event()
        spawn = asyncio.create_subprocess_exec

        async def slowly(*arguments, **more):
            process = await spawn(*arguments, **more)
            made.set()
            await go_on.wait()
            return process

        monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
        supervisor = supervised(tmp_path)
        starting = asyncio.create_task(supervisor.start())
        await made.wait()
        stopping = asyncio.create_task(supervisor.stop())
        await asyncio.sleep(0)
        go_on.set()
        async with asyncio.timeout(20):  # the child would have 30
            await stopping
        starting.cancel()
        assert supervisor.states[0].pid is None

    asyncio.run(run())


def test_a_stop_does_not_wait_for_a_child_that_is_to_be_started_again_later(tmp_path, monkeypatch):
    monkeypatch.setattr("tidegate.kit.supervisor._FIRST_BACKOFF_S", 3600)

    async def run():
        supervisor = supervised(tmp_path)
        await supervisor.start()
        os.kill(supervisor.states[0].pid, signal.SIGKILL)
        await until(lambda: supervisor.states[0].restarts == 1)
        async with asyncio.timeout(20):
            await supervisor.stop()

    asyncio.run(run())


def test_a_child_that_cannot_be_made_is_told(tmp_path):
    async def run():
        supervisor = supervised(tmp_path, ChildSpec("none", [str(tmp_path / "no-such-program")]))
        with pytest.raises(ChildFailed, match="none could not be started .*No such file"):
            await supervisor.start()
        await supervisor.stop()

    asyncio.run(run())


def test_a_child_ends_when_its_supervisor_is_killed(tmp_path):
    script = f"""
import asyncio, sys
from pathlib import Path
from tidegate.kit.supervisor import ChildSpec, Supervisor
spec = ChildSpec("toy", [sys.executable, "-c", {CHILD!r}, {str(tmp_path / "toy.ended")!r}])
async def run():
    supervisor = Supervisor([spec], run_dir=Path({str(tmp_path / "run")!r}), log_dir=Path({str(tmp_path / "logs")!r}))
    await supervisor.start()
    print("ready", flush=True)
    await asyncio.sleep(60)
asyncio.run(run())
"""

    async def run():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
        assert await process.stdout.readline() == b"ready\n"
        process.kill()
        await process.wait()
        await until((tmp_path / "toy.ended").exists)

    with contextlib.suppress(ProcessLookupError):
        asyncio.run(run())


HANGING = CHILD.replace(
    'return {"toy": "127.0.0.1:1"}',
    """if not Path(sys.argv[1]).with_suffix(".hung").exists():
            asyncio.get_running_loop().call_later(0.1, self.hang)
        return {"toy": "127.0.0.1:1"}
    def hang(self):
        Path(sys.argv[1]).with_suffix(".hung").touch()
        import time
        time.sleep(600)""",
)


def test_a_child_that_hangs_is_late_and_then_started_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LATE_S", 0.2)
    monkeypatch.setattr(module, "_LOOK_S", 0.05)

    async def run():
        spec = child(tmp_path, code=HANGING)
        seen = []
        supervisor = Supervisor(
            [ChildSpec(spec.name, spec.command, watchdog_s=2)],
            run_dir=tmp_path / "run",
            log_dir=tmp_path / "logs",
            on_change=lambda states: seen.append((states[0].pid, states[0].silent_since is not None)),
        )
        await supervisor.start()
        (state,) = supervisor.states
        first = state.pid
        await until(lambda: state.restarts == 1 and state.ready)
        assert (first, True) in seen, "it was late before it was ended"
        await until(lambda: state.silent_since is None)
        await supervisor.stop()
        # SIGABRT has it say where it hung.
        assert "in hang" in (tmp_path / "logs" / "toy.log").read_text()
        assert (tmp_path / "toy.ended").read_text() == "stopped in order"

    asyncio.run(run())


def test_a_child_that_hangs_is_only_told_of_where_it_is_not_to_be_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LATE_S", 0.2)
    monkeypatch.setattr(module, "_LOOK_S", 0.05)

    async def run():
        spec = child(tmp_path)
        supervisor = Supervisor(
            [ChildSpec(spec.name, spec.command, watchdog_s=0)], run_dir=tmp_path / "run", log_dir=tmp_path / "logs"
        )
        await supervisor.start()
        (state,) = supervisor.states
        os.kill(state.pid, signal.SIGSTOP)
        await until(lambda: state.silent_since is not None)
        os.kill(state.pid, signal.SIGCONT)
        await until(lambda: state.silent_since is None)
        assert state.restarts == 0
        await supervisor.stop()

    asyncio.run(run())


def test_a_child_that_never_gave_a_sign_of_life_is_left_alone(tmp_path, monkeypatch):
    """A component may be another program's process, which knows nothing of it."""
    monkeypatch.setattr(module, "_LATE_S", 0.1)
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    looked = []
    silent = module.Listener.silent_s
    monkeypatch.setattr(module.Listener, "silent_s", lambda self: looked.append(silent(self)) or looked[-1])

    async def run():
        code = CHILD.replace("import asyncio, sys", "import asyncio, os, sys; os.environ.pop('NOTIFY_SOCKET')")
        supervisor = supervised(tmp_path, child(tmp_path, code=code))
        await supervisor.start()
        await until(lambda: len(looked) > 50)
        assert set(looked) == {0.0} and supervisor.states[0].silent_since is None
        await supervisor.stop()

    asyncio.run(run())

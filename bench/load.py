"""Twenty sessions at once, each changing a knob every two seconds, and a dense sweep beside them."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import cpu_of, percentile, resident_bytes
from bench.session import Session
from bench.table import Figure, duration, print_figures, print_head
from scripts.app_server import Server, free_port
from ui import link, loaded
from ui.app_state import AppState, ExploreSettings

SESSIONS = 20
EVERY_S = 2.0
SHORT_S, LONG_S = 60.0, 300.0
TARGET_S = 1.0
CPU_TARGET_S = 0.020
ALONE_TURNS = 40
MODELS = ("granite-4.1-8b", "llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3")
CEILINGS_MS = (20, 24, 28, 32, 38, 45, 50, 60, 75, 90)


async def _move_ceiling(session: Session, turn: int) -> None:
    value = CEILINGS_MS[turn % len(CEILINGS_MS)]
    await session.trigger("field_plan_itl_ceiling_ms_live", "settled", {"value": value, "at": turn})


async def _change_budget(session: Session, turn: int) -> None:
    await session.set_number("field_explore_max_pes", 64 - turn % 60)  # a new sweep nearly every time


async def _change_cell(session: Session, turn: int) -> None:
    await session.set_number("field_cell_batch", 1 + turn % 64)


@dataclass(frozen=True)
class Habit:
    """What a session does: its page, its settings, its knob."""

    name: str
    page: str
    explore: ExploreSettings
    turn: Callable[[Session, int], Awaitable[None]]


HABITS = (
    Habit("Serving plan, ITL ceiling", "serving_plan", ExploreSettings(), _move_ceiling),
    Habit("Pareto, PE budget", "auto_explore", ExploreSettings(), _change_budget),
    Habit("Sensitivity, PE budget", "auto_explore", ExploreSettings(tab="Sensitivity"), _change_budget),
    Habit("Cell, batch", "cell", ExploreSettings(), _change_cell),
)


@dataclass
class Seen:
    """What all sessions saw."""

    waits_s: dict[str, list[float]] = field(default_factory=dict)
    during_sweep_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    sweep: str = "not started"
    sweeping: bool = False


def _query(habit: Habit, number: int) -> str:
    model = MODELS[number % len(MODELS)]
    spec = {**loaded.default_spec(), "hf_config": model, "model": model}
    encoded = link.encode(AppState(spec=spec, explore=habit.explore))
    return f"{link.PARAMETER}={encoded}"


async def _use(address: str, number: int, until_s: float, seen: Seen) -> None:
    """Be one session: a knob every two seconds; a wait counts from when the knob was due."""
    habit = HABITS[number % len(HABITS)]
    session = Session(address, habit.page, _query(habit, number))
    waits_s = seen.waits_s.setdefault(habit.name, [])
    try:
        await session.open()
        due_s = time.monotonic() + EVERY_S * (number / SESSIONS)
        turn = number
        while due_s < until_s:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            sweeping = seen.sweeping
            await habit.turn(session, turn)
            wait_s = time.monotonic() - due_s
            waits_s.append(wait_s)
            if sweeping:
                seen.during_sweep_s.append(wait_s)
            due_s += EVERY_S
            turn += 1
    except Exception as error:
        seen.errors.append(f"{habit.name}: {type(error).__name__}: {error}"[:300])
    finally:
        with contextlib.suppress(Exception):
            await session.close()


async def _sweep(address: str, start_s: float, until_s: float, seen: Seen) -> None:
    """Be one more session: start a dense sweep half-way, and look at it as its page does."""
    habit = Habit("dense", "auto_explore", ExploreSettings(dense=True), _change_budget)
    await asyncio.sleep(max(0.0, start_s - time.monotonic()))
    session = Session(address, habit.page, _query(habit, 0))
    try:
        await session.open()
        begun_s = time.monotonic()
        seen.sweeping = True
        await session.press("explore_start")
        while time.monotonic() < until_s and not session.has("explore_front"):
            await asyncio.sleep(0.5)
            await session.rerun()
        spent = duration(time.monotonic() - begun_s)
        seen.sweep = f"done in {spent}" if session.has("explore_front") else f"still going after {spent}"
    except Exception as error:
        seen.errors.append(f"dense sweep: {type(error).__name__}: {error}"[:300])
    finally:
        seen.sweeping = False
        with contextlib.suppress(Exception):
            await session.close()


async def _watch(pid: int, until_s: float, seen: Seen) -> None:
    begun_s = time.monotonic()
    while time.monotonic() < until_s:
        seen.sizes.append((time.monotonic() - begun_s, resident_bytes(pid)))
        await asyncio.sleep(5.0)
    seen.sizes.append((time.monotonic() - begun_s, resident_bytes(pid)))


async def _alone(server: Server) -> list[Figure]:
    """Return the server's CPU time a change where one session at a time turns its knob."""
    figures = []
    for number, habit in enumerate(HABITS):
        session = Session(f"127.0.0.1:{server.port}", habit.page, _query(habit, number))
        await session.open()
        for turn in range(ALONE_TURNS // 2):  # what is made once is made
            await habit.turn(session, turn)
        before_s = cpu_of(server.process.pid)
        for turn in range(ALONE_TURNS // 2, ALONE_TURNS // 2 + ALONE_TURNS):
            await habit.turn(session, turn)
        cpu_s = (cpu_of(server.process.pid) - before_s) / ALONE_TURNS
        await session.close()
        figures.append(
            Figure(
                name=f"  {habit.name}: server's CPU a change",
                measured=duration(cpu_s),
                target=f"< {duration(CPU_TARGET_S)}",
                met=cpu_s < CPU_TARGET_S,
            )
        )
    return figures


async def _all(server: Server, last_s: float) -> Seen:
    seen = Seen()
    address = f"127.0.0.1:{server.port}"
    now_s = time.monotonic()
    until_s = now_s + last_s
    await asyncio.gather(
        *(_use(address, number, until_s, seen) for number in range(SESSIONS)),
        _sweep(address, now_s + last_s / 2, until_s, seen),
        _watch(server.process.pid, until_s, seen),
    )
    return seen


def _figures(seen: Seen, cpu_s: float, last_s: float) -> list[Figure]:
    waits_s = [wait for found in seen.waits_s.values() for wait in found]
    n_errors = len(seen.errors)
    figures = [
        Figure(name="errors", measured=str(n_errors), target="0", met=n_errors == 0),
        Figure(name="changes answered", measured=f"{len(waits_s):,}"),
    ]
    if waits_s:
        p95_s = percentile(waits_s, 0.95)
        figures += [
            Figure(
                name="p95 from a knob to the end of the run",
                measured=duration(p95_s),
                target="< 1 s",
                met=p95_s < TARGET_S,
                note=f"median {duration(percentile(waits_s, 0.5))}, longest {duration(max(waits_s))}",
            ),
            *(
                Figure(name=f"  {name}", measured=duration(percentile(found, 0.95)))
                for name, found in sorted(seen.waits_s.items())
                if found
            ),
            Figure(
                name="server's CPU a change",
                measured=duration(cpu_s / len(waits_s)),
                note=f"{cpu_s:.1f} s in {last_s:.0f} s, opening the pages and the sweep included",
            ),
        ]
    if seen.during_sweep_s:
        p95_s = percentile(seen.during_sweep_s, 0.95)
        figures.append(
            Figure(
                name="p95 while a dense sweep runs beside",
                measured=duration(p95_s),
                target="< 1 s",
                met=p95_s < TARGET_S,
                note=f"{len(seen.during_sweep_s)} changes",
            )
        )
    figures.append(Figure(name="dense sweep of one more session", measured=seen.sweep))
    sizes = [seen.sizes[round(share * (len(seen.sizes) - 1) / 4)] for share in range(5)]
    figures.append(
        Figure(
            name="server's resident size",
            measured=f"{sizes[-1][1] / 1e6:.0f} MB",
            note=", ".join(f"{size / 1e6:.0f} MB at {at_s:.0f} s" for at_s, size in sizes),
        )
    )
    return figures


def main(*, long: bool = False) -> None:
    """Measure and print."""
    last_s = LONG_S if long else SHORT_S
    print_head(f"load: {SESSIONS} websocket sessions, a knob every {EVERY_S:.0f} s for {last_s:.0f} s")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(port=free_port(), log=Path(folder) / "server.log")
        server.start()
        try:
            alone = asyncio.run(_alone(server))
            before_s = cpu_of(server.process.pid)
            seen = asyncio.run(_all(server, last_s))
            cpu_s = cpu_of(server.process.pid) - before_s
        finally:
            server.stop()
        said = server.log.read_text(errors="replace")
    head = Figure(name=f"one session at a time, {ALONE_TURNS} changes each", measured="")
    print_figures([head, *alone, *_figures(seen, cpu_s, last_s)])
    for error in sorted(set(seen.errors)):
        print(f"error: {error}")
    if "Traceback" in said:
        print(f"the server's log has a traceback:\n{said[-2000:]}")

"""The command line: `planner`, also `python -m planner_core`.

Owns: `main`, its exit codes (0 answered, 1 the oracle disagrees, 2 a fault of the input, 70 a fault of the
planner, 130 interrupted), and the promise that nothing ever ends in a traceback.
Refuses: numbers; every one comes from the rooms below.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from planner_core.errors import PlannerError, shorten

EXIT_OK = 0
EXIT_FAULT = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class InternalFault(PlannerError):
    """Something that the planner should have foreseen."""

    kind = "internal"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows `planner` on the command line; the process's own by default.

    Returns
    -------
    int
        The exit code.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # as long as the process
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader had enough, as `head` does
        _close_stdout()
        return EXIT_OK
    except KeyboardInterrupt:
        with suppress(OSError):
            print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except OSError as error:
        _close_stdout()
        with suppress(OSError):
            print(f"the output could not be written: {error.strerror or error}", file=sys.stderr)
        return EXIT_FAULT


def _run(arguments: list[str]) -> int:
    """Run one command; a fault becomes lines on stderr, or a document on stdout."""
    from planner_core.cli.terminal import print_error

    as_json = "--json" in arguments
    try:
        from planner_core.cli.commands import run_command

        return run_command(arguments)
    except PlannerError as error:
        print_error(error, as_json=as_json)
        return EXIT_FAULT
    except (OSError, KeyboardInterrupt):
        raise
    except MemoryError:
        print_error(InternalFault("there is not enough memory for this"), as_json=as_json)
        return EXIT_INTERNAL
    except Exception as error:
        if os.environ.get("PLANNER_TRACEBACK"):
            raise
        text = f"{type(error).__name__}: {shorten(str(error), limit=200)}"
        print_error(
            InternalFault(
                f"a fault of the planner itself, please report it: {text} (PLANNER_TRACEBACK=1 shows where)"
            ),
            as_json=as_json,
        )
        return EXIT_INTERNAL


def _close_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail again."""
    with suppress(OSError, ValueError, AttributeError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)

"""The commands and their options, as typer reads them.

Owns: names, help texts, and typer's own complaints turned into faults.
Refuses: work: each command hands its arguments to a function of `cli.plan`, `cli.sweep` or `cli.describe`,
which is imported only then.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from planner_core import __version__
from planner_core.errors import Fault, InvalidSpec, shorten

HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(
    name="planner",
    help="Plan how to cut an LLM over accelerators: serving plans, sweeps and sensitivity, by formula.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)

SpecArgument = Annotated[
    str,
    typer.Argument(
        metavar="SPEC", help="A run-spec file, or the bare name of one that comes with the planner."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one strict JSON document and nothing else.")]
WeightOption = Annotated[
    str | None,
    typer.Option("--weight-dtype-bytes", metavar="BYTES", help="Bytes a weight, in place of the spec's."),
]
KvOption = Annotated[
    str | None,
    typer.Option("--kv-dtype-bytes", metavar="BYTES", help="Bytes a cached element, in place of the spec's."),
]
PrecisionOption = Annotated[
    str | None,
    typer.Option("--compute-precision", metavar="NAME", help="Which of the machine's peaks computes."),
]
CollectiveOption = Annotated[
    str | None,
    typer.Option("--collective-model", metavar="NAME", help="hierarchical, flat or flat-all-pes."),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="TOKENS", help="Context length; by default the model's longest."),
]
PhaseOption = Annotated[str, typer.Option("--phase", metavar="PHASE", help="decode or prefill.")]
BatchOption = Annotated[str, typer.Option("--batch", metavar="N", help="Sequences on a replica.")]
MaxPesOption = Annotated[
    str | None, typer.Option("--max-pes", metavar="N", help="Use no more PEs than this.")
]
CsvOption = Annotated[str | None, typer.Option("--csv", metavar="FILE", help="Write the table as CSV too.")]


def _axis(name: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar="LIST", help=f"{what}, with commas between.")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"planner {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(help="Sweep a run-spec and choose a config for each context length; write planner_artifacts/.")
def plan(
    spec: SpecArgument,
    decode_itl_ceiling_ms: Annotated[
        str | None, typer.Option("--decode-itl-ceiling-ms", metavar="MS", help="Longest time between tokens.")
    ] = None,
    prefill_itps_floor: Annotated[
        str | None,
        typer.Option("--prefill-itps-floor", metavar="TOK/S", help="F: TTFT of a context S up to S/F."),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective", metavar="NAME", help="lowest_ttft or highest_throughput, in place of targets."
        ),
    ] = None,
    weight_dtype_bytes: WeightOption = None,
    kv_dtype_bytes: KvOption = None,
    compute_precision: PrecisionOption = None,
    collective_model: CollectiveOption = None,
    emit: Annotated[
        bool, typer.Option("--emit", help="Write target_config, pareto_frontier and entitlement .json too.")
    ] = False,
    visualize: Annotated[
        bool, typer.Option("--visualize", help="Write figures too: HTML, and PNG with a Chrome.")
    ] = False,
    project_root: Annotated[
        str, typer.Option("--project-root", metavar="DIR", help="Where planner_artifacts/ goes.")
    ] = ".",
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.plan import run_plan

    overrides = {
        "--decode-itl-ceiling-ms": decode_itl_ceiling_ms,
        "--prefill-itps-floor": prefill_itps_floor,
        "--objective": objective,
        "--weight-dtype-bytes": weight_dtype_bytes,
        "--kv-dtype-bytes": kv_dtype_bytes,
        "--compute-precision": compute_precision,
    }
    return run_plan(
        spec,
        overrides=overrides,
        collective_model=collective_model,
        emit=emit,
        visualize=visualize,
        project_root=project_root,
        as_json=as_json,
    )


@app.command(help="Open one config at one batch and context: components, communication, memory.")
def cell(
    spec: SpecArgument,
    tp: Annotated[str | None, typer.Option("--tp", metavar="N", help="Tensor parallel ranks.")] = None,
    cp: Annotated[
        str | None,
        typer.Option(
            "--cp", metavar="N", help="TP ranks that share the sequence of a KV head; 1 by default."
        ),
    ] = None,
    bs: Annotated[str | None, typer.Option("--bs", metavar="N", help="Sequences on the replica.")] = None,
    ctx: Annotated[str | None, typer.Option("--ctx", metavar="TOKENS", help="Context length.")] = None,
    pp: Annotated[
        str | None, typer.Option("--pp", metavar="N", help="Pipeline stages; 1 by default.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label", metavar="NAME", help="Take what is not given from this named config of the spec."
        ),
    ] = None,
    phase: PhaseOption = "decode",
    weight_dtype_bytes: WeightOption = None,
    kv_dtype_bytes: KvOption = None,
    compute_precision: PrecisionOption = None,
    collective_model: CollectiveOption = None,
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.plan import run_cell

    return run_cell(
        spec,
        overrides=_widths(weight_dtype_bytes, kv_dtype_bytes, compute_precision),
        collective_model=collective_model,
        sizes={"--tp": tp, "--cp": cp, "--pp": pp, "--bs": bs, "--ctx": ctx},
        label=label,
        phase=phase,
        as_json=as_json,
    )


def _widths(weight: str | None, kv: str | None, precision: str | None) -> dict[str, str | None]:
    return {"--weight-dtype-bytes": weight, "--kv-dtype-bytes": kv, "--compute-precision": precision}


@app.command(
    help="Sweep every way to cut the model, and print the Pareto front of latency, PEs and efficiency."
)
def explore(
    spec: SpecArgument,
    context: ContextOption = None,
    phase: PhaseOption = "decode",
    batch: BatchOption = "1",
    max_pes: MaxPesOption = None,
    dense: Annotated[
        bool,
        typer.Option(
            "--dense", help="1 and every even degree (CP to 256, TP to 64, PP to 32, DP to 64): minutes."
        ),
    ] = False,
    cp: Annotated[str | None, _axis("cp", "CP degrees to try")] = None,
    tp: Annotated[str | None, _axis("tp", "TP degrees to try")] = None,
    pp: Annotated[str | None, _axis("pp", "PP degrees to try")] = None,
    dp: Annotated[str | None, _axis("dp", "DP degrees to try")] = None,
    kv_shard_mode: Annotated[str | None, _axis("kv-shard-mode", "split, replicate")] = None,
    ffn_shard_scope: Annotated[str | None, _axis("ffn-shard-scope", "TP, TP+CP, TP+DP, TP+CP+DP")] = None,
    tp_placement: Annotated[str | None, _axis("tp-placement", "inner, outer")] = None,
    cp_placement: Annotated[str | None, _axis("cp-placement", "inner, outer")] = None,
    cp_ring_variant: Annotated[str | None, _axis("cp-ring-variant", "qoml, kv")] = None,
    weight_dtype_bytes: WeightOption = None,
    kv_dtype_bytes: KvOption = None,
    compute_precision: PrecisionOption = None,
    collective_model: CollectiveOption = None,
    csv: CsvOption = None,
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.sweep import run_explore

    return run_explore(
        spec,
        overrides=_widths(weight_dtype_bytes, kv_dtype_bytes, compute_precision),
        collective_model=collective_model,
        setting={"--context": context, "--phase": phase, "--batch": batch, "--max-pes": max_pes},
        dense=dense,
        axes={
            "cp": cp,
            "tp": tp,
            "pp": pp,
            "dp": dp,
            "kv_shard_mode": kv_shard_mode,
            "ffn_shard_scope": ffn_shard_scope,
            "tp_placement": tp_placement,
            "cp_placement": cp_placement,
            "cp_ring_variant": cp_ring_variant,
        },
        csv=csv,
        as_json=as_json,
    )


@app.command(help="Vary each knob alone around a row of the front, or around any config.")
def sensitivity(
    spec: SpecArgument,
    context: ContextOption = None,
    row: Annotated[
        str | None, typer.Option("--row", metavar="N", help="A row of `planner explore`; 0 by default.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="CONFIG", help="cp=8,tp=16,pp=1,dp=1,ffn_shard_scope=TP+CP"),
    ] = None,
    phase: PhaseOption = "decode",
    batch: BatchOption = "1",
    max_pes: MaxPesOption = None,
    weight_dtype_bytes: WeightOption = None,
    kv_dtype_bytes: KvOption = None,
    compute_precision: PrecisionOption = None,
    collective_model: CollectiveOption = None,
    csv: CsvOption = None,
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.sweep import run_sensitivity

    return run_sensitivity(
        spec,
        overrides=_widths(weight_dtype_bytes, kv_dtype_bytes, compute_precision),
        collective_model=collective_model,
        setting={"--context": context, "--phase": phase, "--batch": batch, "--max-pes": max_pes},
        row=row,
        config=config,
        csv=csv,
        as_json=as_json,
    )


@app.command(help="Describe a Hugging Face config.json exactly, or refuse it by name.")
def parse(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG", help="A config.json, or the bare name of a model that comes with the planner."
        ),
    ],
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.describe import run_parse

    return run_parse(config, as_json=as_json)


@app.command(help="List the machines that come with the planner, or show one with each constant's source.")
def hardware(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A machine, or a hardware file.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.describe import run_hardware

    return run_hardware(name, as_json=as_json)


@app.command(help="Put published measurements beside the planner's times, with each one's source.")
def accuracy(
    machine: Annotated[
        str | None, typer.Option("--machine", metavar="NAME", help="Only this machine's measurements.")
    ] = None,
    csv: CsvOption = None,
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.accuracy import run_accuracy

    return run_accuracy(machine=machine, csv=csv, as_json=as_json)


@app.command(help="Compare FLOP and weight bytes with the model's own code, run by torch on the meta device.")
def oracle(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SPEC|CONFIG", help="A run-spec or a config.json, or the bare name of a preset."
        ),
    ],
    context: Annotated[
        str | None,
        typer.Option(
            "--context", metavar="TOKENS", help="Context length; 4096 by default, or the model's longest."
        ),
    ] = None,
    batch: Annotated[str, typer.Option("--batch", metavar="N", help="Sequences.")] = "8",
    phase: Annotated[
        str, typer.Option("--phase", metavar="LIST", help="decode, prefill, or both with a comma between.")
    ] = "decode,prefill",
    as_json: JsonOption = False,
) -> int:
    from planner_core.cli.describe import run_oracle_command

    return run_oracle_command(source, context=context, batch=batch, phase=phase, as_json=as_json)


@app.command("app", help="Serve the browser app on this machine.")
def serve(
    port: Annotated[str, typer.Option("--port", metavar="N", help="Port to listen on.")] = "8501",
    headless: Annotated[bool, typer.Option("--headless", help="Do not open a browser.")] = False,
) -> int:
    from planner_core.cli.describe import run_app

    run_app(port=port, headless=headless)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : sequence of str
        What follows `planner`.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    InvalidSpec
        What typer complains about too: an unknown option, a missing argument.
    """
    try:
        result = app(args=list(arguments), prog_name="planner", standalone_mode=False)
    except SystemExit:  # typer's word for a reader that went away
        raise BrokenPipeError from None
    except Exception as error:
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from None
        if not hasattr(error, "format_message"):
            raise
        raise InvalidSpec([_usage_fault(error)]) from None
    code = result if isinstance(result, int) else 0
    if code == 130:  # typer's word for an interrupt
        raise KeyboardInterrupt
    return code


def _usage_fault(error: Any) -> Fault:
    """Return typer's complaint as a fault; its classes moved between versions, so they are known by name."""
    kind = type(error).__name__
    context = getattr(error, "ctx", None)
    command = getattr(context, "command", None)
    path = getattr(context, "command_path", None) or "planner"
    options = [
        option
        for parameter in getattr(command, "params", ())
        for option in getattr(parameter, "opts", ())
        if option.startswith("--")
    ]
    see_help = f"see {path} --help"
    if kind == "NoSuchOption":
        close = difflib.get_close_matches(error.option_name, options, n=1)
        return Fault(
            where=shorten(error.option_name)[1:-1],
            given="an option that there is not",
            allowed=f"the options of {path}: {', '.join(options)}",
            fix=f"did you mean {close[0]}?" if close else see_help,
        )
    if kind == "MissingParameter":
        name = getattr(error.param, "metavar", None) or str(getattr(error.param, "name", "argument"))
        return Fault(
            where=name,
            given="nothing",
            allowed=getattr(error.param, "help", None) or "a value",
            fix=f"add it; {see_help}",
        )
    if kind == "BadOptionUsage":
        return Fault(where=error.option_name, given="no value", allowed="a value", fix=f"add it; {see_help}")
    said = (
        shorten(error.format_message())[1:-1].rstrip(".").removeprefix("Got ").replace("No such", "no such")
    )
    names = sorted(getattr(command, "commands", ()))
    if names:
        said = said.partition(". Did you mean ")[0]  # some versions of typer add that
        close = difflib.get_close_matches(said.partition("'")[2], names, n=1)
        fix = f"did you mean {close[0]}?" if close else see_help
        return Fault(where="command", given=said, allowed=f"one of {', '.join(names)}", fix=fix)
    return Fault(where=path, given=said, allowed=f"the arguments of {path}", fix=see_help)

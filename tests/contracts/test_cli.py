"""The command line's answers: the JSON documents with their promised keys, and the text."""

import csv
import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import pytest

from planner_core import __version__
from planner_core.preset_files import preset_names, presets_dir
from tests.contracts.cli_runs import GRANITE, LLAMA, ROOT, run, start

ROW = {
    "tp", "cp", "n_pes", "batch", "itl_s", "ttft_s", "tokens_per_s_per_node", "replicas_per_node", "binding",
    "meets_itl", "meets_ttft", "memory_bytes_per_pe",
}  # fmt: skip
COMPONENT = {
    "name", "n_layers", "weight_bytes", "kv_bytes", "activation_bytes", "flops", "load_s", "flop_s", "time_s",
    "bind",
}  # fmt: skip
MEMORY = {"weight_bytes", "kv_bytes", "activation_bytes", "embedding_bytes", "budget_bytes", "fits"}
CONFIG = {
    "cp", "tp", "pp", "dp", "kv_shard_mode", "ffn_shard_scope", "tp_placement", "cp_placement",
    "cp_ring_variant", "latency_s", "pes_used", "efficiency", "throughput_tokens_per_s",
    "memory_bytes_per_pe", "hbm_frac", "fits", "binding",
}  # fmt: skip
KNOB = {"knob", "value", "latency_s", "memory_bytes_per_pe", "fits", "reason", "is_baseline"}
CELL = ["cell", GRANITE, "--tp", "8", "--cp", "1", "--bs", "16", "--ctx", "8192"]
AROUND = "cp=8,tp=16,pp=1,dp=1,ffn_shard_scope=TP+CP"


# plan


def test_plan_prints_its_document_and_writes_the_sweep(capsys, tmp_path):
    ran = run(capsys, "plan", GRANITE, "--json", "--project-root", str(tmp_path))
    document = ran.document()
    assert ran.code == 0
    assert ran.err == ""
    assert {"model", "hardware", "grid_size", "buckets"} <= set(document)
    assert (document["grid_size"], len(document["buckets"])) == (15, 6)
    for bucket in document["buckets"]:
        assert {"context_tokens", "selected", "sla_met", "why", "rows"} <= set(bucket)
        assert len(bucket["rows"]) == 15
        assert all(set(row) >= ROW for row in bucket["rows"])
        assert bucket["selected"] in bucket["rows"]
        for row in bucket["rows"]:
            assert (row["longest_context_tokens"] is None) == (row["itl_s"] is not None)
    first = document["buckets"][0]["selected"]
    assert (first["tp"], first["cp"], first["batch"], first["replicas_per_node"]) == (8, 1, 124, 8)
    assert f"{first['tokens_per_s_per_node']:.0f}" == "28089"
    assert [path.name for path in (tmp_path / "planner_artifacts").iterdir()] == ["sweep_results.json"]


def test_plan_text_has_a_row_a_config_and_says_how_to_read_the_pick(capsys, tmp_path):
    ran = run(capsys, "plan", GRANITE, "--project-root", str(tmp_path))
    assert ran.code == 0
    assert "8k context (8,192 tokens): ITL <= 50 ms, TTFT <= 0.27 s" in ran.out
    pick = r"TP8 +8 +124 +35\.3 +0\.22 +28089 .*attention:kv_load +yes   <- selected"
    assert re.search(pick, ran.out)
    assert re.search(r"TP16 CP2 +16 +262 +39\.5 .* 26500 ", ran.out)
    assert ran.out.count("<- selected") == 6
    assert len(re.findall(r"^  TP\d+", ran.out, re.MULTILINE)) == 6 * 15
    bucket = ran.out.split("\n\n")[1]
    assert re.findall(r"^  (TP\d+ CP\d+) .*same as (.*)$", bucket, re.MULTILINE) == [
        ("TP4 CP2", "TP4"), ("TP4 CP4", "TP4"),
        ("TP8 CP2", "TP8"), ("TP8 CP4", "TP8"), ("TP8 CP8", "TP8"),
        ("TP16 CP4", "TP16 CP2"), ("TP16 CP8", "TP16 CP2"), ("TP32 CP8", "TP32 CP4"),
    ]  # fmt: skip
    assert "  why: TP8 gives 28,089 tok/s a node" in ran.out
    assert "The runner-up" in ran.out
    assert "How to read it." in ran.out
    assert f"wrote {tmp_path}/planner_artifacts/sweep_results.json" in ran.out


def test_plan_says_which_target_fails_and_what_would_meet_it(capsys, tmp_path):
    ran = run(
        capsys, "plan", GRANITE, "--decode-itl-ceiling-ms", "30", "--project-root", str(tmp_path), "--json"
    )
    bucket = ran.document()["buckets"][0]
    assert ran.code == 0
    assert bucket["sla_met"] is False
    assert bucket["selected"]["tp"] == 32
    assert f"{bucket['selected']['ttft_s']:.2f} {bucket['selected']['itl_s'] * 1e3:.0f}" == "0.14 42"
    assert "is over 30.0 ms by" in bucket["why"]
    assert any("smaller batch" in advice for advice in bucket["advice"])


def test_options_take_the_place_of_the_spec(capsys, tmp_path):
    def selected(*options):
        ran = run(capsys, "plan", GRANITE, "--json", "--project-root", str(tmp_path), *options)
        assert ran.code == 0
        return [bucket["selected"] for bucket in ran.document()["buckets"]]

    plain = selected()
    fastest = selected("--objective", "lowest_ttft")
    assert all(row["ttft_s"] <= other["ttft_s"] for row, other in zip(fastest, plain, strict=True))
    assert fastest[0]["tp"] == 32
    thin = selected("--kv-dtype-bytes", "1", "--weight-dtype-bytes", "1", "--compute-precision", "fp8")
    assert thin[0]["tokens_per_s_per_node"] > 1.5 * plain[0]["tokens_per_s_per_node"]
    assert selected("--collective-model", "hierarchical")[0]["itl_s"] < plain[0]["itl_s"]


def test_emit_writes_every_file_and_they_agree(capsys, tmp_path):
    ran = run(capsys, "plan", GRANITE, "--emit", "--json", "--project-root", str(tmp_path / "new" / "place"))
    folder = tmp_path / "new" / "place" / "planner_artifacts"
    assert ran.code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "entitlement.json", "pareto_frontier.json", "sweep_results.json", "target_config.json",
    ]  # fmt: skip
    files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()}
    plan = ran.document()
    cells = files["sweep_results"]["cells"]
    n_fitting = sum(row["itl_s"] is not None for bucket in plan["buckets"] for row in bucket["rows"])
    assert len(cells) == n_fitting + 15 * 6
    decode = {(c["context_tokens"], c["tp"], c["cp"]): c for c in cells if c["phase"] == "decode"}
    for bucket, target in zip(plan["buckets"], files["target_config"]["buckets"], strict=True):
        assert target["selected"] == bucket["selected"]
        for row in bucket["rows"]:
            cell = decode[bucket["context_tokens"], row["tp"], row["cp"]]
            assert (cell["step_s"], cell["batch"]) == (row["itl_s"], row["batch"])
            assert cell["memory"]["total_bytes"] == row["memory_bytes_per_pe"]
            assert set(cell["components"][0]) == COMPONENT
    floors = files["entitlement"]["selected"]
    assert {(f["context_tokens"], f["phase"]) for f in floors} == {
        (bucket["context_tokens"], phase) for bucket in plan["buckets"] for phase in ("decode", "prefill")
    }
    names = [operator["name"] for operator in floors[0]["operators"]]
    assert names[:3] == ["qkv_projection", "scores_and_values", "output_projection"]
    frontier = files["pareto_frontier"]["buckets"][0]["frontier"]
    assert {(point["tp"], point["cp"]) for point in frontier} == {(8, 1)}
    rates = [point["tokens_per_s_per_node"] for point in frontier]
    assert rates == sorted(rates)


def test_visualize_writes_self_contained_html_and_says_in_one_line_that_there_is_no_chrome(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "no-such-chrome"))
    ran = run(capsys, "plan", GRANITE, "--visualize", "--json", "--project-root", str(tmp_path))
    folder = tmp_path / "planner_artifacts"
    assert ran.code == 0
    assert ran.document()["grid_size"] == 15
    assert sorted(path.name for path in folder.glob("*.html")) == [
        "interactivity_per_node.html", "interactivity_per_replica.html", "prefill_footprint.html",
        "roofline.html",
    ]  # fmt: skip
    assert not list(folder.glob("*.png"))
    assert len(ran.err.splitlines()) == 1
    assert "no-such-chrome" in ran.err
    for path in folder.glob("*.html"):
        assert not re.search(r'<(script|link)[^>]+(src|href)="?http', path.read_text(encoding="utf-8"))


@pytest.mark.browser
def test_visualize_draws_png_with_a_chrome(capsys, tmp_path, monkeypatch, chrome_path):
    monkeypatch.setenv("BROWSER_PATH", chrome_path)
    ran = run(capsys, "plan", GRANITE, "--visualize", "--project-root", str(tmp_path))
    images = sorted((tmp_path / "planner_artifacts").glob("*.png"))
    assert ran.code == 0
    assert [path.stem for path in images] == [
        "interactivity_per_node", "interactivity_per_replica", "prefill_footprint", "roofline",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in images)


@pytest.mark.parametrize("name", preset_names("run_specs"))
def test_every_preset_plans_by_name_and_by_path(capsys, tmp_path, name):
    by_name = run(capsys, "plan", name, "--json", "--project-root", str(tmp_path))
    path = presets_dir() / "run_specs" / f"{name}.json"
    by_path = run(capsys, "plan", str(path), "--json", "--project-root", str(tmp_path))
    assert (by_name.code, by_path.code) == (0, 0)
    assert by_name.document() == by_path.document()


# cell


def test_cell_prints_the_reference_to_its_last_digit(capsys):
    ran = run(capsys, *CELL)
    assert ran.code == 0
    assert (
        "step 8.569 ms, communication 1.864 ms, binding attention:kv_load, 1867 tok/s a replica, "
        "14938 a node (x8)"
    ) in ran.out
    rows = [line.split() for line in ran.out.splitlines()]
    assert [
        "attention/global",
        "40",
        "419.43",
        "2684.4",
        "10.5",
        "17.448",
        "4.350",
        "0.110",
        "4.350",
        "kv_load",
    ] in rows
    assert [
        "ffn/dense",
        "40",
        "1572.86",
        "0.0",
        "10.5",
        "25.166",
        "2.211",
        "0.159",
        "2.211",
        "weight_load",
    ] in rows
    assert ["lm_head", "1", "102.76", "0.0", "0.5", "1.644", "0.144", "0.010", "0.144", "weight_load"] in rows
    assert ["model", "total", "2095.05", "2684.4", "21.5", "44.258", "6.705"] in rows
    assert "fits, " in ran.out
    assert "the largest batch that fits is 124" in ran.out


def test_cell_document(capsys):
    document = run(capsys, *CELL, "--json").document()
    assert set(document) >= {
        "phase", "step_s", "communication_s", "binding", "tokens_per_s_per_replica", "tokens_per_s_per_node",
        "components", "memory",
    }  # fmt: skip
    assert [set(component) for component in document["components"]] == [COMPONENT] * 3
    assert set(document["memory"]) >= MEMORY
    assert document["memory"]["fits"] is True
    parts = sum(component["time_s"] for component in document["components"])
    assert document["step_s"] == pytest.approx(parts + document["communication_s"], rel=1e-12)
    waits = sum(stage["time_s"] for stage in document["stages"] if stage["component"] == "communication")
    assert document["communication_s"] == pytest.approx(waits, rel=1e-12)


def test_limits_of_a_cell_are_where_it_stops_fitting(capsys):
    limits = run(capsys, *CELL, "--json").document()["limits"]

    def fits(batch, context):
        options = ["--tp", "8", "--bs", str(batch), "--ctx", str(context), "--json"]
        return run(capsys, "cell", GRANITE, *options).document()["memory"]["fits"]

    assert fits(limits["largest_batch"], 8192)
    assert not fits(limits["largest_batch"] + 2, 8192)
    assert fits(16, limits["longest_context_tokens"])
    assert not fits(16, limits["longest_context_tokens"] + 1)


def test_a_cell_that_does_not_fit_says_by_how_much(capsys):
    ran = run(capsys, "cell", GRANITE, "--tp", "8", "--bs", "126", "--ctx", "8192")
    assert ran.code == 0
    assert re.search(r"does NOT fit, short of [\d.]+ MB", ran.out)
    assert ran.out.index("does NOT fit") < ran.out.index("tok/s a replica")


def test_prefill_of_a_named_config_with_a_size_of_its_own(capsys):
    ran = run(
        capsys, "cell", GRANITE, "--label", "TP=8, batch 16", "--bs", "1", "--phase", "prefill", "--json"
    )
    document = ran.document()
    assert (document["phase"], document["tp"], document["batch"], document["context_tokens"]) == (
        "prefill", 8, 1, 8192,
    )  # fmt: skip
    assert f"{document['step_s']:.2f}" == "0.22"


def test_a_context_above_the_models_is_a_warning_and_an_answer(capsys):
    for tail in ([], ["--json"]):
        ran = run(capsys, "cell", GRANITE, "--tp", "8", "--bs", "2", "--ctx", "262144", *tail)
        assert ran.code == 0
        assert re.match(r"warning: --ctx: 262,144 tokens is above the 131,072 .*\n\Z", ran.err)
        assert ran.out


# explore and sensitivity


def test_explore_document(capsys):
    document = run(capsys, "explore", LLAMA, "--context", "131072", "--json").document()
    assert (document["n_grid"], document["n_enumerated"]) == (36864, 28800)
    assert sum(document["pruned"].values()) == 36864 - 28800
    assert sum(document["infeasible"].values()) == 28800 - document["n_feasible"]
    assert document["elapsed_s"] > 0.0
    assert 2 <= len(document["pareto"]) <= 7
    assert all(set(row) >= CONFIG for row in document["pareto"])
    latencies = [row["latency_s"] for row in document["pareto"]]
    assert latencies == sorted(latencies)
    assert all(row["pes_used"] <= 128 and row["fits"] for row in document["pareto"])


def test_explore_text_counts_prunes_and_why_not(capsys):
    ran = run(capsys, "explore", LLAMA, "--context", "131072")
    assert ran.code == 0
    assert "36,864 cells in the grid, 28,800 configs enumerated" in ran.out
    assert "pruned: more stages than layers 0, head split too fine 0" in ran.out
    assert re.search(
        r"do not fit, for lack of: weights [\d,]+, KV [\d,]+, activations [\d,]+, PEs 0", ran.out
    )
    assert "illustrative" in ran.out
    assert ran.err == ""  # progress is for a terminal


def test_explore_takes_axes_a_budget_and_a_phase(capsys):
    options = ["--cp", "1,3", "--tp", "8,16", "--pp", "1", "--dp", "1", "--tp-placement", "inner"]
    ran = run(
        capsys,
        "explore",
        LLAMA,
        "--context",
        "8192",
        "--phase",
        "prefill",
        "--max-pes",
        "47",
        *options,
        "--json",
    )
    document = ran.document()
    assert document["axes"]["cp"] == [1, 3]
    assert document["n_grid"] == 2 * 2 * 2 * 4 * 2 * 2
    assert {row["pes_used"] for row in document["pareto"]} <= {8, 16, 24}
    assert document["infeasible"]["PEs"] > 0
    assert document["phase"] == "prefill"


def test_where_nothing_fits_the_closest_config_and_its_shortfall_are_named(capsys):
    options = ["explore", LLAMA, "--context", "1048576", "--max-pes", "16"]
    text = run(capsys, *options)
    document = run(capsys, *options, "--json").document()
    assert (text.code, document["pareto"]) == (0, [])
    short = document["closest"]["shortfall_bytes"]
    assert short > 0.0
    assert f"short of {short / 1e6:,.1f} MB" in text.out
    assert "warning: --context: 1,048,576 tokens is above" in text.err


def test_csv_holds_the_front(capsys, tmp_path):
    path = tmp_path / "front.csv"
    document = run(capsys, "explore", LLAMA, "--csv", str(path), "--json").document()
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["latency_s"]) for row in rows] == [row["latency_s"] for row in document["pareto"]]
    assert set(rows[0]) >= CONFIG


def test_sensitivity_document(capsys):
    ran = run(capsys, "sensitivity", LLAMA, "--context", "131072", "--config", AROUND, "--json")
    document = ran.document()
    assert set(document["baseline"]) >= CONFIG
    assert (document["baseline"]["cp"], document["baseline"]["ffn_shard_scope"]) == (8, "TP+CP")
    assert all(set(row) >= KNOB for row in document["rows"])
    assert {row["knob"] for row in document["rows"]} == {"cp", "tp", "pp", "dp", "ep"}
    fits = {row["value"]: row["fits"] for row in document["rows"] if row["knob"] == "cp"}
    assert (fits[1], fits[2], fits[4]) == (False, False, True)
    at_baseline = [row for row in document["rows"] if row["is_baseline"]]
    assert [row["knob"] for row in at_baseline] == ["cp", "tp", "pp", "dp", "ep"]
    assert {row["latency_s"] for row in at_baseline} == {document["baseline"]["latency_s"]}


def test_sensitivity_around_a_row_of_the_front(capsys, tmp_path):
    front = run(capsys, "explore", LLAMA, "--json").document()["pareto"]
    path = tmp_path / "knobs.csv"
    ran = run(capsys, "sensitivity", LLAMA, "--row", "1", "--csv", str(path), "--json")
    kept = {"cp", "tp", "latency_s", "memory_bytes_per_pe"}
    assert {key: ran.document()["baseline"][key] for key in kept} == {key: front[1][key] for key in kept}
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + len(ran.document()["rows"])


def test_sensitivity_text_marks_the_baseline_and_explains_a_step(capsys):
    ran = run(capsys, "sensitivity", LLAMA, "--context", "131072", "--config", AROUND)
    assert ran.code == 0
    assert "baseline TP16 CP8 FFN TP+CP" in ran.out
    assert re.search(r"^ +\*8 ", ran.out, re.MULTILINE)
    assert "(pod): hop 10 us, 32 GB/s" in ran.out
    assert "no: weights" in ran.out


# parse, hardware, the rest


def test_parse_document(capsys):
    document = run(capsys, "parse", "granite-4.1-8b", "--json").document()
    assert set(document) >= {
        "architecture", "n_params", "n_layers", "attention", "ffn", "kv_bytes_per_token", "weight_bytes",
        "assumed", "ignored",
    }  # fmt: skip
    (group,) = document["attention"]
    assert {key: group[key] for key in ("kind", "n_layers", "n_q_heads", "n_kv_heads", "window_tokens")} == {
        "kind": "global", "n_layers": 40, "n_q_heads": 32, "n_kv_heads": 8, "window_tokens": None,
    }  # fmt: skip
    assert (group["head_dim_k"], group["head_dim_v"]) == (128, 128)
    assert document["kv_bytes_per_token"] == {"full": 163840, "windowed": 0}


def test_parse_counts_the_real_llama_70b(capsys, shared_data):
    path = next(
        path
        for path in sorted((shared_data / "hf_configs").rglob("*.json"))
        if "llama-3.1-70b" in str(path).lower()
    )
    document = run(capsys, "parse", str(path), "--json").document()
    assert document["n_params"] == 70_553_706_496
    assert f"{document['weight_bytes'] / 1e9:.1f}" == "141.1"


def test_a_config_with_a_long_list_of_unquantized_modules_is_read(capsys, tmp_path):
    config = json.loads((presets_dir() / "models" / "llama-3.1-8b.json").read_text(encoding="utf-8"))
    listed = [f"model.vision_tower.layers.{at}.{'x' * 60}" for at in range(30_000)]
    config["quantization_config"] = {"quant_method": "fp8", "modules_to_not_convert": listed}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert 1_000_000 < path.stat().st_size < 4_000_000
    ran = run(capsys, "parse", str(path), "--json")
    assert ran.code == 0
    assert ran.document()["n_params"] == 8_030_261_248
    path.write_bytes(b" " * 4_000_001)
    (fault,) = run(capsys, "parse", str(path), "--json").faults()
    assert fault["allowed"] == "at most 4,000,000 bytes of JSON"


@pytest.mark.parametrize("name", preset_names("models"))
def test_parse_text_of_every_model(capsys, name):
    ran = run(capsys, "parse", name)
    assert (ran.code, ran.err) == (0, "")
    assert f"{run(capsys, 'parse', name, '--json').document()['n_params']:,} parameters" in ran.out


def test_a_refused_model_is_named_by_field(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({"architectures": ["MambaForCausalLM"], "model_type": "mamba", "num_hidden_layers": 64})
    )
    ran = run(capsys, "parse", str(path), "--json")
    assert ran.code == 2
    error = ran.document()["error"]
    assert (error["kind"], set(error)) == ("unsupported_model", {"kind", "message", "field"})
    text = run(capsys, "parse", str(path))
    assert (text.code, text.out) == (2, "")
    assert text.err == f"{error['field']}: {error['message']}\n"


def test_hardware_lists_machines_and_shows_sources(capsys):
    machines = run(capsys, "hardware", "--json").document()["machines"]
    assert tuple(machine["name"] for machine in machines) == preset_names("hardware")
    listed = run(capsys, "hardware").out
    assert all(re.search(rf"^{re.escape(name)} ", listed, re.MULTILINE) for name in preset_names("hardware"))
    shown = run(capsys, "hardware", "trn2")
    sources = run(capsys, "hardware", "trn2", "--json").document()["sources"]
    for path, source in sources.items():
        assert re.search(
            rf"^{re.escape(path)} .*{source['kind']} .*{re.escape(source['cite'])}", shown.out, re.MULTILINE
        )
    assert "no source" not in shown.out
    assert run(capsys, "hardware", str(presets_dir() / "hardware" / "trn2.json")).out == shown.out


def test_version_and_help(capsys):
    assert run(capsys, "--version").out == f"planner {__version__}\n"
    bare, helped = run(capsys), run(capsys, "--help")
    assert bare.code == helped.code == 0
    assert bare.out == helped.out
    for name in ("plan", "cell", "explore", "sensitivity", "parse", "hardware", "accuracy", "oracle", "app"):
        assert re.search(rf"^  {name} ", helped.out, re.MULTILINE)
        assert run(capsys, name, "--help").out.startswith(f"Usage: planner {name}")


@pytest.mark.oracle
def test_oracle_of_a_spec_and_of_a_config(capsys):
    pytest.importorskip("torch")
    ran = run(capsys, "oracle", GRANITE, "--phase", "decode", "--json")
    document = ran.document()
    assert (ran.code, document["agrees"]) == (0, True)
    (phase,) = document["phases"]
    assert (phase["phase"], phase["context_tokens"], phase["batch"]) == ("decode", 4096, 8)
    by_name = {segment["name"]: segment for segment in phase["segments"]}
    assert set(by_name["total"]) >= {
        "name", "oracle_flops", "planner_flops", "oracle_weight_bytes", "planner_weight_bytes",
        "explained_by",
    }  # fmt: skip
    assert by_name["total"]["oracle_flops"] == 155_558_346_752
    text = run(capsys, "oracle", "granite-4.1-8b", "--phase", "decode")
    assert text.code == 0
    assert "155,558,346,752" in text.out


def test_oracle_exits_1_where_it_disagrees(capsys, monkeypatch):
    from planner_core import oracle

    segment = oracle.OracleSegment(
        name="lm_head", oracle_flops=10, planner_flops=8.0, oracle_weight_bytes=4, planner_weight_bytes=4.0
    )
    phase = oracle.OraclePhase(phase="decode", context_tokens=4096, batch=8, segments=(segment,))
    report = oracle.OracleReport(phases=(phase,), spoke="a stand-in")
    monkeypatch.setattr(oracle, "run_oracle", lambda **_: report)
    ran = run(capsys, "oracle", GRANITE, "--json")
    assert (ran.code, ran.document()["agrees"]) == (1, False)
    assert "does NOT agree" in run(capsys, "oracle", GRANITE).out


def test_app_serves_the_shipped_app_and_ends_when_told_to():
    pytest.importorskip("streamlit")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "planner_core", "app", "--port", str(port), "--headless"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            health = ""
            deadline_s = time.monotonic() + 60.0
            while health != "ok" and time.monotonic() < deadline_s and server.poll() is None:
                time.sleep(0.2)
                with suppress(OSError):
                    url = f"http://127.0.0.1:{port}/_stcore/health"
                    health = urllib.request.urlopen(url, timeout=5).read().decode()
            assert health == "ok"
        finally:
            server.terminate()
        server.wait(timeout=30)


def test_module_and_script_are_the_same_command():
    ran = start("cell", GRANITE, "--tp", "8", "--bs", "16", "--ctx", "8192", "--json")
    assert ran.code == 0
    assert f"{ran.document()['step_s'] * 1e3:.3f}" == "8.569"

"""Machines from JSON: every fault at once, every preset loads, every constant says where it comes from."""

import copy
import datetime as dt
import json
import math

import pytest

from planner_core.errors import InvalidSpec
from planner_core.hardware import SOURCE_KINDS
from planner_core.hardware_file import (
    constant_paths,
    hardware_to_json,
    list_presets,
    load_preset,
    parse_hardware,
    preset_hardware_json,
)
from planner_core.strict_json import dumps, load_json

REQUIRED = {
    "trn1", "trn2", "trn3", "sip128", "h100-sxm", "h100-cluster-32", "h200", "b200", "b300", "gb200",
    "gb200-nvl72", "mi300x", "mi325x", "mi355x", "tpu-v5p", "tpu-v6e",
}  # fmt: skip

SMALL = {
    "name": "mine",
    "node_pes": 8,
    "peak_flops_per_s": {"bf16": 1e15},
    "hbm_bytes_per_s": 3e12,
    "hbm_bytes": 80000000000,
    "usable_hbm_frac": 0.9,
    "collective_model": "flat",
    "tiers": [
        {"name": "node", "n_pes": 8, "hop_latency_s": 1e-6, "link_bytes_per_s": 400e9},
        {"name": "rest", "n_pes": None, "hop_latency_s": 5e-6, "link_bytes_per_s": 50e9},
    ],
}


def changed(path, value):
    """SMALL with one value changed; a path is keys and indices."""
    source = copy.deepcopy(SMALL)
    place = source
    for part in path[:-1]:
        place = place[part]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return source


def faults_of(source):
    with pytest.raises(InvalidSpec) as caught:
        parse_hardware(source)
    for fault in caught.value.faults:
        assert "\n" not in fault.line()
        assert fault.allowed
        assert fault.fix
    return caught.value.faults


def test_the_presets_that_there_must_be():
    assert set(list_presets()) >= REQUIRED


@pytest.mark.parametrize("name", list_presets())
def test_preset(name):
    source = preset_hardware_json(name)
    machine = load_preset(name)
    assert machine.name == name
    assert machine.title != name
    assert "bf16" in machine.peak_flops_per_s
    assert machine.max_pes >= machine.node_pes
    assert set(source["serving_grid"]["tp"]) == set(machine.tp_grid)
    assert hardware_to_json(machine) == source | {"sources": hardware_to_json(machine)["sources"]}


@pytest.mark.parametrize("name", list_presets())
def test_every_constant_of_a_preset_has_its_source(name):
    machine = load_preset(name)
    assert sorted(machine.sources) == sorted(constant_paths(machine))
    for path, source in machine.sources.items():
        assert source.kind in SOURCE_KINDS
        assert len(source.cite) >= 10, path
        assert dt.date.fromisoformat(source.date) <= dt.date(2027, 1, 1)
        assert (source.kind == "illustrative") == machine.illustrative, path


@pytest.mark.parametrize("name", list_presets())
def test_presets_round_trip_through_text(name):
    machine = load_preset(name)
    text = dumps(hardware_to_json(machine))
    again = parse_hardware(load_json(text, where=name))
    assert again == machine
    assert dumps(hardware_to_json(again)) == text


def test_trn2_is_the_contract():
    trn2 = load_preset("trn2")
    assert trn2.node_pes == trn2.max_pes == 64
    assert trn2.peak_flops_per_s == {"bf16": 158e12, "fp8": 316e12}
    assert (trn2.hbm_bytes_per_s, trn2.hbm_bytes) == (716e9, 24 * 2**30)
    assert trn2.budget_bytes == 0.9 * 24 * 2**30
    assert trn2.reserved_bytes == 0
    assert trn2.collective_model == "flat"
    assert {(tier.hop_latency_s, tier.link_bytes_per_s) for tier in trn2.tiers} == {(1.5e-6, 100e9)}
    assert [tier.n_pes for tier in trn2.tiers] == [4, 64]
    assert trn2.kv_merge_bytes_per_s == 320e9
    assert trn2.batch_multiple == 2
    assert (trn2.tp_grid, trn2.cp_grid) == ((4, 8, 16, 32), (1, 2, 4, 8))


def test_sip128_is_the_contract():
    sip = load_preset("sip128")
    assert sip.illustrative
    assert sip.collective_model == "flat-all-pes"
    assert [(t.n_pes, t.hop_latency_s, t.link_bytes_per_s) for t in sip.tiers] == [
        (16, 0.15e-6, 256e9),
        (128, 0.5e-6, 128e9),
        (2048, 10e-6, 32e9),
        (math.inf, 20e-6, 12.5e9),
    ]
    assert sip.peak_flops_per_s == {"bf16": 16e12}
    assert (sip.hbm_bytes, sip.hbm_bytes_per_s, sip.budget_bytes) == (6e9, 256e9, 6e9)
    assert sip.node_pes == 128


def test_dense_peaks_double_where_the_width_halves():
    for name in ("h100-sxm", "h200", "b200", "gb200", "mi300x", "mi355x", "trn2"):
        peaks = load_preset(name).peak_flops_per_s
        assert peaks["fp8"] == pytest.approx(2 * peaks["bf16"], rel=1e-4), name


def test_what_may_be_left_out():
    machine = parse_hardware(SMALL)
    assert machine.title == "mine"
    assert (machine.tp_grid, machine.cp_grid) == ((1, 2, 4, 8), (1, 2, 4, 8))
    assert machine.batch_multiple == 1
    assert machine.kv_merge_bytes_per_s is None
    assert machine.reserved_bytes == 0
    assert machine.sources == {}
    assert machine.max_pes == math.inf
    assert parse_hardware(hardware_to_json(machine)) == machine


def test_whole_floats_are_counts():
    assert parse_hardware(changed(["node_pes"], 8.0)).node_pes == 8


@pytest.mark.parametrize(
    ("path", "value", "where", "match"),
    [
        (["hbm_bytes_per_s"], 0, "hbm_bytes_per_s", r"a number from 1 to 1e\+18 B/s; fix: give a value"),
        (["hbm_bytes_per_s"], -1.5, "hbm_bytes_per_s", r"got -1\.5;"),
        (["hbm_bytes_per_s"], "3 TB/s", "hbm_bytes_per_s", r"got '3 TB/s'; .*without quotes or unit"),
        (["hbm_bytes_per_s"], True, "hbm_bytes_per_s", r"got True"),
        (["hbm_bytes_per_s"], None, "hbm_bytes_per_s", r"got None"),
        (["hbm_bytes_per_s"], KeyError, "hbm_bytes_per_s", r"got nothing; .*B/s; fix: add the key"),
        (["hbm_bytes"], 2**59 + 1, "hbm_bytes", r"past 2\*\*53 only what a 64-bit float holds exactly"),
        (["hbm_bytes"], float("nan"), "hbm_bytes", r"got nan"),
        (["hbm_bytes"], 10**400, "hbm_bytes", r"hbm_bytes: got 1000"),
        (["usable_hbm_frac"], 1.01, "usable_hbm_frac", r"above 0 and up to 1"),
        (["usable_hbm_frac"], 0, "usable_hbm_frac", r"above 0 and up to 1"),
        (["peak_flops_per_s"], {}, "peak_flops_per_s", r"an object of 1 to 16 peaks by precision"),
        (["peak_flops_per_s"], [1], "peak_flops_per_s", r"an object of 1 to 16 peaks by precision"),
        (["peak_flops_per_s", "bf16"], "x", "peak_flops_per_s.bf16", r"FLOP/s"),
        (["peak_flops_per_s", "BF 16"], 1e15, "peak_flops_per_s", r"got 'BF 16'; allowed: precisions of"),
        (["node_pes"], 2.5, "node_pes", r"a whole number of PEs from 1"),
        (["node_pes"], 0, "node_pes", r"a whole number of PEs from 1"),
        (["node_pes"], KeyError, "node_pes", r"got nothing"),
        (["name"], " ", "name", r"the machine's short name, a text of 1 to 400 characters"),
        (["name"], "n" * 401, "name", r"a text of 1 to 400 characters"),
        (["illustrative"], "no", "illustrative", r"true or false"),
        (["collective_model"], "hierachical", "collective_model", r"did you mean 'hierarchical'"),
        (["collective_model"], 3, "collective_model", r"one of hierarchical, flat, flat-all-pes"),
        (["tiers"], [], "tiers", r"an array of 1 to 16 tiers"),
        (["tiers"], {}, "tiers", r"an array of 1 to 16 tiers"),
        (["tiers"], [SMALL["tiers"][0]] * 17, "tiers", r"an array of 1 to 16 tiers"),
        (["tiers", 0], 3, "tiers[0]", r"a JSON object"),
        (["tiers", 0, "hop_latency_s"], -1e-6, "tiers[0].hop_latency_s", r"a number from 0 to 1000 s"),
        (["tiers", 0, "hop_latency_s"], KeyError, "tiers[0].hop_latency_s", r"got nothing; .* s; fix: add"),
        (["tiers", 0, "n_pes"], None, "tiers[0].n_pes", r"null on the last tier only"),
        (["tiers", 1, "n_pes"], 8, "tiers[1].n_pes", r"more than the 8 PEs of the tier inside it"),
        (["tiers", 1, "n_pes"], 0, "tiers[1].n_pes", r"or null for no limit"),
        (["tiers", 1, "latency_us"], 5, "tiers[1].latency_us", r"an unknown key; .*hop_latency_s"),
        (["hbm_byte"], 1, "hbm_byte", r"an unknown key; .*did you mean 'hbm_bytes'"),
        (["serving_grid"], {"tp": [1, 16], "cp": [1]}, "serving_grid.tp[1]", r"at most the 8 PEs of a node"),
        (["serving_grid"], {"tp": [4, 4], "cp": [1]}, "serving_grid.tp[1]", r"each value once"),
        (["serving_grid"], {"tp": [], "cp": [1]}, "serving_grid.tp", r"an array of 1 to 32 TP degrees"),
        (["serving_grid"], {"tp": [0.5], "cp": [1]}, "serving_grid.tp[0]", r"a whole number of ranks"),
        (["serving_grid"], {"tp": [1]}, "serving_grid.cp", r"an array of 1 to 32 CP degrees; fix: add"),
        (["batch_multiple"], 0, "batch_multiple", r"a whole number of sequences from 1 to 65,536"),
        (["kv_merge_bytes_per_s"], 0, "kv_merge_bytes_per_s", r"or null for the tier that the copies span"),
        (["sources"], {"hbm_bytes": {"kind": "guess", "cite": "x"}}, "sources.hbm_bytes.kind", r"assumed"),
        (["sources"], {"hbm": {"kind": "vendor", "cite": "x"}}, "sources", r"got 'hbm'; .*of a constant"),
    ],
)  # fmt: skip
def test_refuses(path, value, where, match):
    source = changed(path, value)
    found = faults_of(source)
    assert [fault.where for fault in found] == [where]
    with pytest.raises(InvalidSpec, match=match):
        parse_hardware(source)


def test_node_must_fit_in_its_tiers():
    source = changed(["tiers"], SMALL["tiers"][:1]) | {"node_pes": 16}
    with pytest.raises(InvalidSpec, match=r"node_pes: got 16; allowed: at most the 8 PEs of the outermost"):
        parse_hardware(source)


def test_every_fault_at_once():
    source = copy.deepcopy(SMALL)
    source["node_pes"] = "eight"
    source["hbm_bytes"] = -1
    source["tiers"][0]["n_pes"] = None
    source["extra"] = 1
    source["serving_grid"] = {"tp": [8, 8], "cp": []}
    assert {fault.where for fault in faults_of(source)} == {
        "node_pes", "hbm_bytes", "tiers[0].n_pes", "extra", "serving_grid.tp[1]", "serving_grid.cp",
    }  # fmt: skip


@pytest.mark.parametrize("source", [None, 3, [], "x"])
def test_not_an_object(source):
    assert [fault.allowed for fault in faults_of(source)] == ["a JSON object"]


def test_names_are_one_printable_line():
    machine = parse_hardware(changed(["name"], "a\nb\x1b[31m<script>"))
    assert machine.name == "a b\ufffd[31m<script>"


def test_keys_from_outside_are_safe_in_messages():
    (fault,) = faults_of(SMALL | {"bad\n\x1bkey": 1})
    assert fault.where == "bad \ufffdkey"


@pytest.mark.parametrize(("key", "where"), [("", "''"), (" ", "' '"), ("\t", "' '")])
def test_a_blank_key_is_shown_in_quotes(key, where):
    with pytest.raises(InvalidSpec) as caught:
        parse_hardware(preset_hardware_json("trn2") | {key: 1})
    assert [fault.where for fault in caught.value.faults] == [where]


def test_unknown_preset():
    with pytest.raises(InvalidSpec, match=r"got '\.\./x'; allowed: one of .*trn2"):
        load_preset("../x")


def test_presets_are_strict_json_with_units_in_the_keys():
    for name in list_presets():
        source = preset_hardware_json(name)
        json.dumps(source, allow_nan=False)
        numbers = {key for key, value in source.items() if isinstance(value, (int, float))}
        plain = {"illustrative", "node_pes", "batch_multiple"}
        assert all(key.endswith(("_s", "_bytes", "_frac")) for key in numbers - plain)

"""The physics contract written a second time, one config at a time, in plain Python.

Nothing here calls a formula of `planner_core`: it reads the same descriptions of a model and of a machine,
and works out each number with `math`, ints and loops over layers, tiers and ranks, in the order in which
the contract says it. Where the product's arrays and these loops agree, two readings of the text agree.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from planner_core.hardware import Machine
from planner_core.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner_core.workload import Workload

# First named innermost; by (tp_placement, cp_placement).
RANK_ORDER = {
    ("inner", "inner"): ("tp", "cp", "dp"),
    ("inner", "outer"): ("tp", "dp", "cp"),
    ("outer", "inner"): ("cp", "tp", "dp"),
    ("outer", "outer"): ("dp", "cp", "tp"),
}


@dataclass(frozen=True)
class Cut:
    """One config, as a person would write it down."""

    cp: int = 1
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    kv_shard_mode: str = "split"
    ffn_shard_scope: str = "TP"
    tp_placement: str = "inner"
    cp_placement: str = "inner"
    cp_ring_variant: str = "qoml"
    kv_split: int | None = None  # a request for fewer copies; None: what the mode says

    def stride(self, axis: str) -> int:
        step = 1
        for name in RANK_ORDER[self.tp_placement, self.cp_placement]:
            if name == axis:
                return step
            step *= getattr(self, name)
        raise KeyError(axis)

    @property
    def pes(self) -> int:
        return self.cp * self.tp * self.pp * self.dp

    @property
    def ffn_over_cp(self) -> bool:
        return "CP" in self.ffn_shard_scope

    @property
    def ffn_over_dp(self) -> bool:
        return "DP" in self.ffn_shard_scope


@dataclass
class Totals:
    """A component's bytes and FLOP on one PE, over its layers."""

    n_layers: int = 0
    weight_bytes: float = 0.0
    kv_bytes: float = 0.0
    activation_bytes: float = 0.0
    flops: float = 0.0
    load_s: float = 0.0
    flop_s: float = 0.0
    time_s: float = 0.0

    def add(self, weight_bytes: float, kv_bytes: float, activation_bytes: float, flops: float) -> None:
        self.n_layers += 1
        self.weight_bytes += weight_bytes
        self.kv_bytes += kv_bytes
        self.activation_bytes += activation_bytes
        self.flops += flops

    def close(self, machine: Machine, precision: str) -> None:
        self.load_s = (self.weight_bytes + self.kv_bytes + self.activation_bytes) / machine.hbm_bytes_per_s
        self.flop_s = self.flops / machine.peak_flops_per_s[precision]
        self.time_s = max(self.load_s, self.flop_s)

    @property
    def bind(self) -> str:
        if self.flop_s >= self.load_s:
            return "flop"
        loads = {
            "weight_load": self.weight_bytes, "kv_load": self.kv_bytes, "act_load": self.activation_bytes,
        }
        return max(loads, key=lambda name: loads[name])


# Section 3: collectives. A group is a list of (ranks, stride).


def ranks_inside(group: list[tuple[int, int]], tier_pes: float) -> float:
    count = 1.0
    for size, stride in group:
        fitting = size if math.isinf(tier_pes) else math.floor(tier_pes / stride)
        count *= min(max(fitting, 1), size)
    return count


def group_ranks(group: list[tuple[int, int]]) -> float:
    return math.prod(size for size, _ in group)


def spanned_tier(group: list[tuple[int, int]], machine: Machine) -> int:
    for at, tier in enumerate(machine.tiers):
        if ranks_inside(group, tier.n_pes) >= group_ranks(group):
            return at
    return len(machine.tiers) - 1


def holding_tier(pes: int, machine: Machine) -> int:
    for at, tier in enumerate(machine.tiers):
        if pes <= tier.n_pes:
            return at
    return len(machine.tiers) - 1


def ring_s(g: float, message: float, latency: float, bandwidth: float) -> float:
    return 2 * (g - 1) * latency + 2 * (g - 1) / g * message / bandwidth


def hop_s(message: float, tier: int, machine: Machine) -> float:
    return machine.tiers[tier].hop_latency_s + message / machine.tiers[tier].link_bytes_per_s


def all_reduce_s(group: list[tuple[int, int]], message: float, machine: Machine, pes: int) -> float:
    g = group_ranks(group)
    if machine.collective_model == "hierarchical":
        total, before = 0.0, 1.0
        for at, tier in enumerate(machine.tiers):
            # Past the outermost tier a plan is infeasible; the group is still one group.
            last = at == len(machine.tiers) - 1
            inside = g if last else ranks_inside(group, tier.n_pes)
            total += ring_s(inside / before, message / before, tier.hop_latency_s, tier.link_bytes_per_s)
            before = inside
        return total
    at = spanned_tier(group, machine)
    if machine.collective_model == "flat-all-pes":
        at = holding_tier(pes, machine)
    tier = machine.tiers[at]
    return ring_s(g, message, tier.hop_latency_s, tier.link_bytes_per_s)


def all_to_all_s(group: list[tuple[int, int]], message: float, machine: Machine, pes: int) -> float:
    """g-1 exchanges of M/g; under `hierarchical` each at the tier that its partner lies in."""
    g = group_ranks(group)
    if machine.collective_model == "hierarchical":
        total, before = 0.0, 1.0
        for at in range(len(machine.tiers)):
            last = at == len(machine.tiers) - 1
            inside = g if last else ranks_inside(group, machine.tiers[at].n_pes)
            total += (inside - before) * hop_s(message / g, at, machine)
            before = inside
        return total
    at = spanned_tier(group, machine)
    if machine.collective_model == "flat-all-pes":
        at = holding_tier(pes, machine)
    tier = machine.tiers[at]
    return (g - 1) * tier.hop_latency_s + (g - 1) / g * message / tier.link_bytes_per_s


# Sections 1, 2 and 6: what one rank holds and does.


def n_copies(group: AttentionGroup, tp: int) -> int:
    return max(tp // group.n_kv_heads, 1)


def split_of(group: AttentionGroup, cut: Cut) -> int:
    if cut.kv_shard_mode == "replicate":
        return 1
    wanted = n_copies(group, cut.tp) if cut.kv_split is None else cut.kv_split
    return max(1, min(wanted, n_copies(group, cut.tp)))


def heads_of(group: AttentionGroup, cut: Cut) -> int:
    return math.ceil(group.n_q_heads / cut.tp)


def attention_weight_elements(group: AttentionGroup, model: ModelArch, cut: Cut) -> float:
    """Every projection matrix of one layer that has a part on the PE."""
    d, heads = model.hidden_size, heads_of(group, cut)
    matrices = []
    if group.kind == "mla":
        nope, rope = group.qk_nope_head_dim, group.qk_rope_head_dim
        if group.q_lora_rank:
            matrices.append(d * group.q_lora_rank)  # down to the query latent, on every rank
            matrices.append(group.q_lora_rank * heads * (nope + rope))
        else:
            matrices.append(d * heads * (nope + rope))
        matrices.append(d * (group.kv_lora_rank + rope))  # down to the cache, on every rank
        matrices.append(group.kv_lora_rank * heads * nope)
        matrices.append(group.kv_lora_rank * heads * group.head_dim_v)
    else:
        kv = math.ceil(group.n_kv_heads / cut.tp) if cut.tp <= group.n_kv_heads else 1
        matrices.append(d * heads * group.head_dim_k)
        if group.has_k_proj:
            matrices.append(d * kv * group.head_dim_k)
        if group.has_v_proj:
            matrices.append(d * kv * group.head_dim_v)
    matrices.append(heads * group.head_dim_v * d)
    return sum(matrices) + group.replicated_weight_elements


def visible(group: AttentionGroup, context: int) -> int:
    return context if group.window_tokens is None else min(context, group.window_tokens)


@lru_cache(maxsize=4096)
def prefill_pairs(kind: str, window: int | None, context: int) -> int:
    """Count, query by query, the keys that each one sees."""
    if window is None:
        return context * (context + 1) // 2
    if kind == "chunked":
        return sum(query % window + 1 for query in range(context))
    return sum(min(query + 1, window) for query in range(context))


def layer_cache_bytes(group: AttentionGroup, cut: Cut, workload: Workload) -> float:
    """Cache of one layer on one PE, whole batch."""
    tokens = visible(group, int(workload.context_tokens)) / cut.cp
    if group.kind == "mla":
        per_token = group.kv_lora_rank + group.qk_rope_head_dim
    else:
        kv = math.ceil(group.n_kv_heads / cut.tp) if cut.tp <= group.n_kv_heads else 1
        per_token = kv * (group.head_dim_k + group.head_dim_v)
    return workload.kv_dtype_bytes * int(workload.batch) * tokens * per_token / split_of(group, cut)


def score_dims(group: AttentionGroup, workload: Workload) -> tuple[int, int]:
    """What a key and a value are when scores are taken: latent for absorbed MLA decode."""
    if group.kind == "mla":
        if workload.phase == "decode":
            return group.kv_lora_rank + group.qk_rope_head_dim, group.kv_lora_rank
        return group.qk_nope_head_dim + group.qk_rope_head_dim, group.head_dim_v
    return group.head_dim_k, group.head_dim_v


def new_tokens(cut: Cut, workload: Workload) -> float:
    """New tokens of the whole batch on one rank."""
    if workload.phase == "decode":
        return int(workload.batch)
    return int(workload.batch) * int(workload.context_tokens) / cut.cp


def attention_layer(
    group: AttentionGroup, model: ModelArch, cut: Cut, workload: Workload
) -> tuple[float, float, float, float]:
    n, tokens = int(workload.batch), new_tokens(cut, workload)
    elements = attention_weight_elements(group, model, cut)
    context = int(workload.context_tokens)
    if workload.phase == "decode":
        pairs = n * visible(group, context) / cut.cp
    else:
        pairs = n * prefill_pairs(group.kind, group.window_tokens, context) / cut.cp
    return (
        workload.widths.attention * elements,
        layer_cache_bytes(group, cut, workload),
        workload.activation_dtype_bytes * tokens * 2 * model.hidden_size,
        2 * tokens * elements + 2 * pairs * heads_of(group, cut) * sum(score_dims(group, workload)),
    )


@dataclass(frozen=True)
class EpRanks:
    """Where the EP ranks come from."""

    of_cp: int
    of_dp: int
    added: int


def ep_ranks(cut: Cut) -> EpRanks:
    """CP ranks that hold copies first, then DP ranks that do, then ranks that would have to be added."""
    spare_cp = 1 if cut.ffn_over_cp else cut.cp
    spare_dp = 1 if cut.ffn_over_dp else cut.dp
    of_cp = min(cut.ep, spare_cp)
    left = cut.ep / of_cp
    of_dp = min(left, spare_dp)
    added = left / of_dp
    if of_dp != int(of_dp) or added != int(added):
        raise ValueError("this reference wants EP to divide evenly")
    return EpRanks(of_cp=of_cp, of_dp=int(of_dp), added=int(added))


def ffn_group_ranks(cut: Cut) -> int:
    return cut.tp * (cut.cp if cut.ffn_over_cp else 1) * (cut.dp if cut.ffn_over_dp else 1)


def scope_tokens(cut: Cut, workload: Workload) -> float:
    """The tokens of all ranks that the FFN scope gathers from."""
    tokens = new_tokens(cut, workload)
    if cut.ffn_over_dp:
        tokens *= cut.dp
    if cut.ffn_over_cp and workload.phase == "prefill":
        tokens *= cut.cp
    return tokens


def ep_tokens(cut: Cut, workload: Workload) -> float:
    """Those, over all the ranks that EP takes in."""
    ranks = ep_ranks(cut)
    tokens = scope_tokens(cut, workload) * ranks.of_dp
    return tokens * ranks.of_cp if workload.phase == "prefill" else tokens


def experts_touched(group: FfnGroup, tokens: float) -> float:
    return group.n_experts * (1 - (1 - group.n_experts_per_token / group.n_experts) ** tokens)


def ffn_layer(
    group: FfnGroup, model: ModelArch, cut: Cut, workload: Workload
) -> tuple[float, float, float, float]:
    d, m, a = model.hidden_size, 3 if group.gated else 2, workload.activation_dtype_bytes
    widths = workload.widths
    if group.kind == "dense":
        tokens = ep_tokens(cut, workload)
        elements = (
            m * d * math.ceil(group.intermediate_size / (ffn_group_ranks(cut) * cut.ep))
            + group.replicated_weight_elements
        )
        return widths.ffn * elements, 0.0, a * tokens * 2 * d, 2 * tokens * elements
    own, pooled = scope_tokens(cut, workload), ep_tokens(cut, workload)
    expert = m * d * math.ceil(group.intermediate_size / ffn_group_ranks(cut))
    shared = m * d * math.ceil(group.shared_intermediate_size / ffn_group_ranks(cut))
    held = math.ceil(group.n_experts / cut.ep)
    share_held = held / group.n_experts
    read = min(experts_touched(group, pooled) * share_held * workload.expert_imbalance, held)
    computed = pooled * group.n_experts_per_token * share_held * workload.expert_imbalance
    return (
        widths.experts * read * expert
        + widths.shared_experts * shared
        + widths.router * group.replicated_weight_elements,
        0.0,
        a * own * 2 * d,
        2 * computed * expert + 2 * own * (shared + group.replicated_weight_elements),
    )


def lm_head(model: ModelArch, cut: Cut, workload: Workload) -> tuple[float, float, float, float]:
    n, columns = int(workload.batch), math.ceil(model.vocab_size / cut.tp)
    elements = model.hidden_size * columns
    return (
        workload.widths.lm_head * elements,
        0.0,
        workload.activation_dtype_bytes * n * (model.hidden_size + columns),
        2 * n * elements,
    )


def components(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> dict[str, Totals]:
    """Walk through the layers and add each one to its component."""
    found: dict[str, Totals] = {}
    for attention_at, ffn_at in model.layer_pattern:
        if attention_at is not None:
            group = model.attention[attention_at]
            total = found.setdefault(f"attention/{group.kind}", Totals())
            total.add(*attention_layer(group, model, cut, workload))
        if ffn_at is not None:
            ffn = model.ffn[ffn_at]
            total = found.setdefault(f"ffn/{ffn.kind}", Totals())
            total.add(*ffn_layer(ffn, model, cut, workload))
    found["lm_head"] = Totals()
    found["lm_head"].add(*lm_head(model, cut, workload))
    for total in found.values():
        total.close(machine, workload.precision)
    return found


def pes_with_added(model: ModelArch, cut: Cut) -> int:
    return cut.pes * (ep_ranks(cut).added if model.ffn else 1)


def ring_payload_bytes(group: AttentionGroup, cut: Cut, workload: Workload) -> float:
    if cut.cp == 1:
        return 0.0
    if cut.cp_ring_variant == "kv":
        return layer_cache_bytes(group, cut, workload)
    query, output = score_dims(group, workload)
    per_head = workload.activation_dtype_bytes * (query + output) + 8
    return new_tokens(cut, workload) * heads_of(group, cut) * per_head


def communication(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> dict[str, float]:
    """Seconds of a step by what is exchanged, layer by layer."""
    found = dict.fromkeys(
        ("kv_merge", "cp_ring", "attention_all_reduce", "expert_all_to_all", "ffn_all_reduce"), 0.0
    )
    a, d = workload.activation_dtype_bytes, model.hidden_size
    tokens, pes = new_tokens(cut, workload), pes_with_added(model, cut)
    tp_axis = (cut.tp, cut.stride("tp"))
    for attention_at, ffn_at in model.layer_pattern:
        if attention_at is not None:
            group = model.attention[attention_at]
            split = split_of(group, cut)
            merged = tokens * heads_of(group, cut) * (a * score_dims(group, workload)[1] + 8)
            if machine.kv_merge_bytes_per_s is not None:
                found["kv_merge"] += (split - 1) * merged / machine.kv_merge_bytes_per_s
            else:
                tier = spanned_tier([(split, cut.stride("tp"))], machine)
                found["kv_merge"] += (split - 1) * hop_s(merged, tier, machine)
            cp_tier = spanned_tier([(cut.cp, cut.stride("cp"))], machine)
            exchange = hop_s(ring_payload_bytes(group, cut, workload), cp_tier, machine)
            if workload.phase == "prefill":
                layer = Totals()
                layer.add(*attention_layer(group, model, cut, workload))
                layer.close(machine, workload.precision)
                exchange = max(0.0, exchange - layer.time_s / cut.cp)
            found["cp_ring"] += (cut.cp - 1) * exchange
            found["attention_all_reduce"] += all_reduce_s([tp_axis], a * tokens * d, machine, pes)
        if ffn_at is not None:
            ffn, ranks = model.ffn[ffn_at], ep_ranks(cut)
            scope_cp = cut.cp if cut.ffn_over_cp else 1
            scope_dp = cut.dp if cut.ffn_over_dp else 1
            added = (ranks.added, cut.pes)
            if ffn.kind == "moe":
                own = a * scope_tokens(cut, workload) * d
                takers = [(ranks.of_cp, cut.stride("cp")), (ranks.of_dp, cut.stride("dp")), added]
                sent = own * ffn.n_experts_per_token
                found["expert_all_to_all"] += 2 * all_to_all_s(takers, sent, machine, pes)
                reducers = [tp_axis, (scope_cp, cut.stride("cp")), (scope_dp, cut.stride("dp"))]
                found["ffn_all_reduce"] += all_reduce_s(reducers, own, machine, pes)
            else:
                reducers = [
                    tp_axis,
                    (scope_cp * ranks.of_cp, cut.stride("cp")),
                    (scope_dp * ranks.of_dp, cut.stride("dp")),
                    added,
                ]
                message = a * ep_tokens(cut, workload) * d
                found["ffn_all_reduce"] += all_reduce_s(reducers, message, machine, pes)
    hop = hop_s(a * tokens * d, holding_tier(pes, machine), machine)
    found["pipeline_hop"] = (cut.pp - 1) * hop
    return found


def latency_s(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> float:
    compute = components(model, machine, cut, workload)
    waits = communication(model, machine, cut, workload)
    return sum(total.time_s for total in compute.values()) + sum(waits.values())


def binding(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> str:
    compute = components(model, machine, cut, workload)
    name = max(compute, key=lambda each: compute[each].time_s)
    if sum(communication(model, machine, cut, workload).values()) > compute[name].time_s:
        return "communication"
    return f"{name.split('/')[0]}:{compute[name].bind}"


def efficiency(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> float:
    """The floor of the work on one PE over the PE-seconds spent."""
    whole = Workload(
        phase=workload.phase,
        context_tokens=workload.context_tokens,
        batch=cut.dp * int(workload.batch),
        widths=workload.widths,
        kv_dtype_bytes=workload.kv_dtype_bytes,
        activation_dtype_bytes=workload.activation_dtype_bytes,
        precision=workload.precision,
    )
    uncut = components(model, machine, Cut(kv_shard_mode="replicate"), whole)
    read_s = sum(c.weight_bytes + c.kv_bytes for c in uncut.values()) / machine.hbm_bytes_per_s
    work_s = sum(c.flops for c in uncut.values()) / machine.peak_flops_per_s[workload.precision]
    return max(read_s, work_s) / (latency_s(model, machine, cut, workload) * cut.pes)


# Section 4: memory on one PE.


@dataclass(frozen=True)
class Memory:
    """Bytes on the most loaded PE. `stages`: (weights, cache) of each stage's layers."""

    stages: tuple[tuple[float, float], ...]
    ends_bytes: float
    activation_bytes: float
    ring_buffer_bytes: float
    total_bytes: float


def ffn_stored_bytes(group: FfnGroup, model: ModelArch, cut: Cut, workload: Workload) -> float:
    d, m, widths = model.hidden_size, 3 if group.gated else 2, workload.widths
    ranks = ffn_group_ranks(cut)
    if group.kind == "dense":
        width = math.ceil(group.intermediate_size / (ranks * cut.ep))
        return widths.ffn * (m * d * width + group.replicated_weight_elements)
    return (
        math.ceil(group.n_experts / cut.ep)
        * widths.experts * m * d * math.ceil(group.intermediate_size / ranks)
        + widths.shared_experts * m * d * math.ceil(group.shared_intermediate_size / ranks)
        + widths.router * group.replicated_weight_elements
    )


def memory(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> Memory:
    size = math.ceil(model.n_layers / cut.pp)
    stages = []
    for start in range(0, model.n_layers, size):
        weights = cache = 0.0
        for attention_at, ffn_at in model.layer_pattern[start : start + size]:
            if attention_at is not None:
                group = model.attention[attention_at]
                weights += workload.widths.attention * attention_weight_elements(group, model, cut)
                if group.owns_cache:
                    cache += layer_cache_bytes(group, cut, workload)
            if ffn_at is not None:
                weights += ffn_stored_bytes(model.ffn[ffn_at], model, cut, workload)
        stages.append((weights, cache))
    columns = math.ceil(model.vocab_size / cut.tp)
    table = workload.widths.embedding * model.hidden_size * columns
    table_and_more = table + workload.widths.embedding * math.ceil(model.extra_embedding_elements / cut.tp)
    head = workload.widths.lm_head * model.hidden_size * columns
    if cut.pp > 1:
        ends = max(table_and_more, head)
    elif model.tied_embeddings:
        ends = head + (table_and_more - table)
    else:
        ends = head + table_and_more
    a, d, n = workload.activation_dtype_bytes, model.hidden_size, int(workload.batch)
    activations = a * n * (d + columns)
    if model.attention:
        activations += a * new_tokens(cut, workload) * 2 * d
    if model.ffn:
        gathered = [
            ep_tokens(cut, workload) if ffn.kind == "dense" else scope_tokens(cut, workload)
            for ffn in model.ffn
        ]
        activations += a * max(gathered) * 2 * d
    ring = max((ring_payload_bytes(group, cut, workload) for group in model.attention), default=0.0)
    heaviest = max(weights + cache for weights, cache in stages)
    return Memory(
        stages=tuple(stages),
        ends_bytes=ends,
        activation_bytes=activations,
        ring_buffer_bytes=ring,
        total_bytes=heaviest + ends + activations + ring + machine.reserved_bytes,
    )


def largest_batch(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> int:
    """Step up by the machine's multiple until the next one is too much."""
    batch = 0
    while True:
        asked = Workload(
            phase=workload.phase,
            context_tokens=workload.context_tokens,
            batch=batch + machine.batch_multiple,
            widths=workload.widths,
            kv_dtype_bytes=workload.kv_dtype_bytes,
            activation_dtype_bytes=workload.activation_dtype_bytes,
            precision=workload.precision,
        )
        if memory(model, machine, cut, asked).total_bytes > machine.usable_hbm_frac * machine.hbm_bytes:
            return batch
        batch += machine.batch_multiple

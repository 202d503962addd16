"""The method in words and formulas, as the Method page and its report show it.

Owns: the text. Each formula restates one of `planner_core`; the code there is what computes.
Refuses: numbers of a model or a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Part:
    """One part of the method: a title, and paragraphs and formulas in order ("$$...$$" is a formula)."""

    title: str
    blocks: tuple[str, ...]


PARTS: Final = (
    Part(
        "What a model is",
        (
            "A model is read from its config.json: hidden size $d$, layers $L$, vocabulary $V$, groups of "
            "attention "
            "layers ($h_q$ query heads, $h_{kv}$ KV heads, head dims $D_k$ and $D_v$, a window or none) "
            "and groups of "
            "FFN layers (dense of width $I$, or $E$ experts of width $I_e$ with $k$ routed per token). A "
            "kind of layer "
            "that is not modelled is refused by name; none is counted as something else.",
            "Cached elements per token and layer, for grouped heads and for multi-head latent attention:",
            r"$$h_{kv}\,(D_k + D_v) \qquad\text{or}\qquad r_{kv} + d_{rope}$$",
            "Byte widths: $w$ of a weight, $c$ of a cached element, $a$ of an activation. A PE is the "
            "smallest engine "
            "that is scheduled on its own; every quantity below is of the most loaded PE, so each cut "
            "rounds up.",
        ),
    ),
    Part(
        "Time of a component",
        (
            "Each component (attention by kind, FFN by kind, the output head) moves its weights, its cache "
            "and its "
            "activations through memory while it computes; the two overlap, so the slower is its time:",
            r"$$t = \max\!\left(\frac{W + KV + Act}{B_{hbm}},\; \frac{F}{P}\right)$$",
            "with $B_{hbm}$ the memory bandwidth and $P$ the peak at the precision in use. What binds is "
            "FLOP, or the "
            "largest of the three loads. A step is the sum of its components and of the communication "
            "between PEs.",
            "One attention layer in decode, $n$ sequences of context $S$, $h = \\lceil h_q/TP \\rceil$ and "
            "$k = \\lceil h_{kv}/TP \\rceil$ heads on the PE:",
            r"$$W = w\,[\,d h D_k + d k (D_k + D_v) + h D_v d\,]$$",
            r"$$KV = \frac{c\,n\,S\,k\,(D_k + D_v)}{split},\qquad Act = 2\,a\,n\,d$$",
            r"$$F = 2n\frac{W}{w} + 2 n S h (D_k + D_v)$$",
            "In prefill each sequence brings $S$ new tokens, and only the causal half of the scores is "
            "counted:",
            r"$$F = 2 n S \frac{W}{w} + 2 n \frac{S(S+1)}{2} h (D_k + D_v)$$",
            "A windowed layer sees $\\min(S, window)$ tokens. One dense FFN layer, $T$ tokens in the step, "
            "$m = 3$ "
            "matrices where it is gated and 2 where not:",
            r"$$W = \frac{w\,m\,d\,I}{TP},\qquad F = 2T\frac{W}{w},\qquad Act = 2\,a\,T\,d$$",
            "The output head runs once, on the last token of each sequence: $W = w V d / TP$, $F = 2 n V d "
            "/ TP$.",
        ),
    ),
    Part(
        "Copies of a KV head",
        (
            "Where TP is larger than the number of KV heads, each head lies on $r = \\lfloor TP/h_{kv} "
            "\\rfloor$ "
            "neighbouring ranks. Cutting the sequence of such a head over $split \\le r$ of its copies "
            "takes the "
            "waste back: the projections stay copied, the cache does not. The partial results then merge, "
            "with the "
            "running maximum and sum in four bytes each:",
            r"$$t_{merge} = \frac{(split - 1)\,T\,h\,(a D_v + 8)}{B_{merge}}$$",
        ),
    ),
    Part(
        "Communication",
        (
            "A ring all-reduce of $M$ bytes over $g$ ranks takes $2(g-1)$ hops and moves $2(g-1)/g$ of the "
            "message:",
            r"$$t = 2(g-1)\,\ell + \frac{2(g-1)}{g}\,\frac{M}{B}$$",
            "There are two a layer, after attention and after the FFN, each of $M = a T d$. All-gather and "
            "reduce-scatter are half of one; an all-to-all sends $(g-1)/g$ of its message.",
            "A machine is a list of tiers, innermost first. *flat* is one ring at the slowest tier that "
            "the group "
            "touches; *flat-all-pes* is one ring at the tier that holds every PE in use, which is "
            "pessimistic for "
            "pipeline stages; *hierarchical* reduces inside each tier first. With $g_k$ ranks of the group "
            "inside "
            "tier $k$ and $l_k = g_k / g_{k-1}$:",
            r"$$t = \sum_k\; 2(l_k - 1)\,\ell_k + \frac{2(l_k-1)}{l_k}\,\frac{M / g_{k-1}}{B_k}$$",
        ),
    ),
    Part(
        "Memory of a PE",
        (
            "A config fits where the heaviest pipeline stage leaves room for its cache and its activations:",
            r"$$weights + KV + activations + reserved \;\le\; f_{usable}\cdot HBM$$",
            "A stage has $\\lceil L/PP \\rceil$ layers. The embedding and the output head take $w V d / "
            "TP$ each, "
            "once where they are tied; an embedding that is only looked up takes memory and no time. The "
            "largest "
            "batch is the largest multiple of the machine's batch step whose decode step fits.",
        ),
    ),
    Part(
        "The nine axes",
        (
            "CP cuts the sequence over further PEs, TP the heads and widths, PP the layers, DP the "
            "requests; five "
            "modes say how the cache and the FFN are cut and in which order ranks lie on PEs. PEs used: "
            "$CP \\cdot TP \\cdot PP \\cdot DP$. EP spreads experts over ranks that would hold copies.",
            "Round the CP ring travels either the rank's own cache (`kv`), or the query, the partial "
            "output and its "
            "two sums (`qoml`): $n q h (2 a D + 8)$ bytes a hop for $q$ new tokens, $CP - 1$ hops a layer. "
            "In "
            "prefill a hop hides behind $1/CP$ of the attention time; in decode nothing hides it.",
            "PP does not shorten one request. It passes through every layer in turn:",
            r"$$t = t_{layer}\,L + t_{head} + (PP - 1)\left(\ell + \frac{a T d}{B}\right)$$",
            "Efficiency is the floor of the work on one PE over the PE-seconds spent, between 0 and 1:",
            r"$$\eta_{decode} = \frac{(W_{once} + KV_{all}) / B_{hbm}}{t \cdot PEs},\qquad "
            r"\eta_{prefill} = \frac{F / P}{t \cdot PEs}$$",
            "with the larger of the two floors in either phase. The front keeps the configs that no other "
            "beats on "
            "latency, PEs used and efficiency at once.",
        ),
    ),
    Part(
        "Serving plan",
        (
            "Each config runs at the largest batch that fits. Throughput of a node is the number of "
            "replicas that fit "
            "it, times batch over ITL. Of the configs that meet both targets the one with the most "
            "throughput is "
            "taken, and of equals the one with the smaller CP. A prefill floor of $F$ tokens a second "
            "means a TTFT of "
            "at most $S/F$. Where none meets the targets, the one with the lowest TTFT is shown, and it is "
            "said "
            "which target fails and by how much.",
        ),
    ),
)

NOT_MODELLED: Final = (
    "Norms, biases, rotary embeddings, softmax, sampling and the embedding look-up take no time.",
    "Kernel launches, scheduling, host work and the network to the client take no time.",
    "Compute reaches its peak and memory its bandwidth: those times are floors, so a real step is slower.",
    "Collectives meet no other traffic on their links, and do not overlap with compute.",
    "One micro-batch is in flight in a pipeline; DP replicas share at most the FFN cut.",
    "Prefill and decode do not disturb each other: chunked prefill and mixed batches are not modelled.",
    "Speculative decoding, prefix caching, paging overhead and offloading are not modelled.",
    "Experts are loaded evenly unless an imbalance is set; decode reads the expected distinct experts.",
    "State space, linear attention, recurrent and cross attention layers are refused by name.",
    "Serving plans are for one node with prefill and decode on the same replica.",
)

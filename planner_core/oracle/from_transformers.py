"""The model's own code, from the `transformers` library, run on the meta device and counted.

Owns: building the language model from a config.json without weights, and running a prefill and one decode
step with a cache.
Refuses: downloads, code that comes with a model (`auto_map` is dropped, only classes inside `transformers`
are used), real tensors, vision and audio towers.
"""

from __future__ import annotations

import importlib
import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from planner_core.errors import shorten
from planner_core.model_arch import ModelArch
from planner_core.oracle.measurement import CannotSpeak, Measurement
from planner_core.oracle.module_segments import sort_modules
from planner_core.oracle.torch_room import MEASURING, count_flops, import_torch

NESTED_LANGUAGE_KEYS = ("text_config", "llm_config", "language_config", "thinker_config")
# What must not choose code, kernels or outputs, and towers that are not counted.
DROPPED_KEYS = frozenset(
    {
        "auto_map", "quantization_config", "dtype", "torch_dtype", "attn_implementation",
        "experts_implementation", "output_attentions", "output_hidden_states", "return_dict",
        "torchscript", "pruned_heads", "vision_config", "audio_config", "transformers_version",
    }
)  # fmt: skip
LARGEST_COUNT = 4096  # layers, experts, heads and the like: each of them may be a loop in a constructor


def measure(
    *,
    config: Mapping[str, object] | None,
    model: ModelArch,
    phases: Sequence[str],
    context_tokens: int,
    batch: int,
) -> tuple[str, tuple[str, ...], Mapping[str, Measurement]]:
    """Build the model, run each phase, and return who spoke, notes and the counts.

    Parameters
    ----------
    config : mapping or None
        The config.json.
    model : ModelArch
        Its parse, only for the class that it chose where the file contradicts itself.
    phases : sequence of str
        "decode", "prefill".
    context_tokens, batch : int
        `S` [tokens] and `n`.

    Returns
    -------
    str, tuple of str, mapping of str to Measurement
        "transformers 5.24.0", what stands for what, and the counts by phase.

    Raises
    ------
    CannotSpeak
        With the reason.
    """
    if config is None:
        raise CannotSpeak("no config.json was given")
    library = _import_transformers()
    with MEASURING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.logging.set_verbosity_error()
        plain = _stripped(config)
        _refuse_large_counts(plain)
        distribution = import_torch().distributions.Distribution
        checks = distribution._validate_args
        distribution.set_default_validate_args(False)  # Gemma 3n's checks ask meta tensors for values
        try:
            language_model, text_config, notes = _build(library, plain, model)
            measured = {
                phase: _measure_phase(library, language_model, text_config, phase, context_tokens, batch)
                for phase in phases
            }
        except CannotSpeak:
            raise
        except Exception as fault:  # foreign code on a foreign file may raise anything
            raise CannotSpeak(
                f"transformers {library.__version__} cannot run it "
                f"({type(fault).__name__}: {shorten(str(fault), limit=160)})"
            ) from fault
        finally:
            distribution.set_default_validate_args(checks)
    return f"transformers {library.__version__}", notes, measured


def _import_transformers() -> Any:
    """Import the library with the hub switched off."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        library = importlib.import_module("transformers")
        importlib.import_module("transformers.models.auto.modeling_auto")
    except ImportError as fault:
        raise CannotSpeak(f"transformers is not installed ({fault})") from fault
    return library


def _stripped(config: Mapping[str, object]) -> dict[str, Any]:
    """Copy a config without private keys and the keys of `DROPPED_KEYS`, at any depth."""

    def copy(value: object) -> Any:
        if isinstance(value, Mapping):
            return {
                key: copy(inner)
                for key, inner in value.items()
                if isinstance(key, str) and not key.startswith("_") and key not in DROPPED_KEYS
            }
        if isinstance(value, (list, tuple)):
            return [copy(inner) for inner in value]
        return value

    plain: dict[str, Any] = copy(config)
    return plain


def _refuse_large_counts(value: object, key: str = "") -> None:
    """Stop before a constructor loops for ever over a count that no model has."""
    if isinstance(value, dict):
        for inner_key, inner in value.items():
            _refuse_large_counts(inner, inner_key)
    elif isinstance(value, list):
        for inner in value:
            _refuse_large_counts(inner, key)
    elif (
        isinstance(value, int)
        and value > LARGEST_COUNT
        and ("num_" in key or "layers" in key or key.endswith(("n_layer", "n_head", "n_heads", "experts")))
    ):
        raise CannotSpeak(f"{key} is {shorten(value)}, more than the {LARGEST_COUNT} tried here")


def _known_type(library: Any, plain: Mapping[str, Any], architecture: str) -> tuple[dict[str, Any], str]:
    """Return the mapping that describes a model the library knows, and its model type.

    The file's own `model_type` where the library has it; else the type whose class is the `architecture`
    that the file names (and that the parser chose); else a nested language model's.
    """
    auto = library.models.auto
    known = auto.configuration_auto.CONFIG_MAPPING
    model_type = plain.get("model_type")
    nested = [plain[key] for key in NESTED_LANGUAGE_KEYS if isinstance(plain.get(key), dict)]
    by_class: dict[str, list[str]] = {}
    for name, classes in auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items():
        for class_name in (classes,) if isinstance(classes, str) else classes:
            by_class.setdefault(class_name, []).append(name)
    if not nested:
        same_class = by_class.get(architecture, [])
        if same_class and model_type not in same_class:
            return dict(plain), same_class[0]
    if isinstance(model_type, str) and model_type in known:
        return dict(plain), model_type
    for inner in nested:
        try:
            return _known_type(library, inner, "")
        except CannotSpeak:
            continue
    raise CannotSpeak(f"transformers {library.__version__} has no model_type {shorten(model_type)}")


def _build(library: Any, plain: dict[str, Any], model: ModelArch) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the language model on the meta device, its config, and what stands for what."""
    torch = import_torch()
    mapping, model_type = _known_type(library, plain, model.architecture)
    named = mapping.pop("model_type", None)
    notes: list[str] = []
    if model_type != named:
        notes.append(f"model_type {shorten(named)} is built as {model_type}, whose class the file names")
    outer = library.AutoConfig.for_model(model_type, **mapping)
    config = outer.get_text_config(decoder=True)
    is_nested = any(isinstance(mapping.get(key), dict) for key in NESTED_LANGUAGE_KEYS)
    if config is not outer and not is_nested and "hidden_size" in mapping:
        config = type(config)(**mapping)
        notes.append(f"the sizes at the file's top are read as those of a {type(config).__name__}")
    auto = library.models.auto.modeling_auto
    options: dict[str, Any] = {
        "dtype": torch.bfloat16,
        "attn_implementation": "eager",
        "experts_implementation": "batched_mm",  # the default, grouped_mm, is counted as 0 FLOP
    }
    initialization = importlib.import_module("transformers.initialization")
    with torch.device("meta"), initialization.no_init_weights():
        if type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING:
            built = library.AutoModelForCausalLM.from_config(config, **options)
        else:
            bare = _bare_class(library, config)._from_config(config, **options)
            built = _with_lm_head(torch, bare, config)
            notes.append(f"{type(bare).__name__} has no lm_head of its own: one matmul stands for it")
    return built.eval(), config, tuple(notes)


def _bare_class(library: Any, config: Any) -> Any:
    """Return the class that runs a language config up to its hidden states, from the config's own module."""
    module_name = type(config).__module__.replace(".configuration_", ".modeling_")
    for name, candidate in vars(importlib.import_module(module_name)).items():
        runs_the_config = getattr(candidate, "config_class", None) is type(config)
        if runs_the_config and name.endswith("Model") and not name.endswith("PreTrainedModel"):
            return candidate
    raise CannotSpeak(f"transformers {library.__version__} has no language model for {type(config).__name__}")


def _with_lm_head(torch: Any, bare: Any, config: Any) -> Any:
    """Put a plain lm_head on a model that ends at its hidden states."""

    class LanguageModel(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = bare
            self.lm_head = torch.nn.Linear(
                config.hidden_size, config.vocab_size, bias=False, dtype=torch.bfloat16
            )

        def get_output_embeddings(self) -> Any:
            return self.lm_head

        def forward(self, input_ids: Any, cache: Any, use_cache: bool, logits_to_keep: int) -> Any:
            hidden = self.model(input_ids, cache=cache, use_cache=use_cache).last_hidden_state
            return self.lm_head(hidden[:, -logits_to_keep:])

    return LanguageModel()


def _measure_phase(
    library: Any, built: Any, config: Any, phase: str, context: int, batch: int
) -> Measurement:
    """Run one phase with a cache of its own and sort what it did."""
    torch = import_torch()
    with torch.device("meta"):
        cache = library.DynamicCache(config=config)
    accepted = inspect.signature(built.forward).parameters
    options: dict[str, Any] = {"cache": cache, "use_cache": True}
    # Asked for the last logits only, Gemma 4 runs the layers that share a cache on the last token alone.
    if "logits_to_keep" in accepted and not getattr(config, "num_kv_shared_layers", 0):
        options["logits_to_keep"] = 1

    def run(n_new_tokens: int) -> None:
        built(torch.zeros(batch, n_new_tokens, dtype=torch.long), **options)

    if phase == "decode":
        with torch.no_grad(), torch.device("meta"):
            run(context - 1)
        new_tokens = 1
    else:
        new_tokens = context
    flops = count_flops(lambda: run(new_tokens))
    return sort_modules(
        built=built,
        config=config,
        cache=cache,
        flops=flops,
        tokens=batch * new_tokens,
        batch=batch,
        context_tokens=context,
    )

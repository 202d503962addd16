"""Any real Hugging Face `config.json` to a `ModelArch`, or a refusal that names what is not modelled.

Owns: `parse_config` (a loaded config to a `ModelArch`).
Refuses: opening files; anything that needs a machine.
"""

from planner_core.hf_config.parse import parse_config

__all__ = ["parse_config"]

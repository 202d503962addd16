"""Mutated run-specs, hardware files and `config.json` files: each must give an answer or a clear refusal.

`python -m fuzz --count N` is the long run; `tests/fuzz` takes 2,000 in the test run.

- `seeds`: what is mutated: the presets, and the real configs beside the repository where they are there.
- `mutations`: changes of structure and of value, some of which stay valid and are extreme.
- `answers`: the promise, and how it is checked.
- `coverage_guided`: the same promise under atheris, which looks for input that reaches new lines.
"""

"""The rules of `check`: records of facts in, findings out. Needs no torch.

The folders are families: what goes wrong with `graphs`, with the `flow` of gradients, with `gradients` that arrive,
with `losses`, their `terms`, their `targets` and `axes`, and in `training`, with `weights` and learning `rates`.
A file declares its rule as a `Rule`, and the function that makes its findings of a fact in `checks.facts` as a `Judge`;
`checks.registry` finds both, in every file of any folder, and asks the judges. `tests/cli/test_rule_samples.py` runs
the sample, and `python docs/codes.py` writes the table.
"""

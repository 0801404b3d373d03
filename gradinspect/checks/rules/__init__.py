"""The rules of `check`: records of facts in, findings out. Needs no torch.

The folders are families: of what can go wrong with `graphs`, gradient `flow`, `losses`, `gradients` and in `training`.
A file declares its rule as a `Rule` and makes findings through it; `checks.registry` finds every file, in any of them.
A rule that needs no more than a fact in `checks.facts` names its function in a `Judge`; other evidence is gathered in
`checks.evidence` and handed over in one line of its observer. `tests/cli/test_rule_samples.py` runs the sample, and
`python docs/codes.py` writes the table.
"""

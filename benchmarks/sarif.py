"""Validate what `gradinspect check -o x.sarif` writes: `python benchmarks/sarif.py sarif-schema-2.1.0.json`.

The schema is that of the standard, from https://docs.oasis-open.org/sarif/sarif/v2.1.0/, which may not be copied here.
Needs jsonschema with its formats: `pip install 'jsonschema[format]'`. The samples of all rules are checked that need
one process, each plain and with its finding ignored by a comment.
"""

import json
import sys
import tempfile
from pathlib import Path

import jsonschema

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from runs import gradinspect  # noqa: E402  # from the tests

from gradinspect.checks.registry import registry  # noqa: E402  # as above


def main(schema_file: str) -> int:
    """Print each file that is not valid, and how many were checked."""
    schema = json.loads(Path(schema_file).read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    num_files = num_wrong = 0
    rules = {code: rule for code, rule in registry().rules.items() if not rule.command.startswith("torchrun")}
    for code, rule in rules.items():
        ignored = "".join(f"{line}  # gradinspect: ignore[{code}]\n" for line in rule.sample.splitlines())
        for text in (rule.sample, ignored):
            errors = list(validator.iter_errors(json.loads(_sarif(text, rule.command.split()[2:]))))
            num_files, num_wrong = num_files + 1, num_wrong + bool(errors)
            for error in errors:
                print(f"{code}: {error.json_path}: {error.message}")
    print(f"{num_files - num_wrong} of {num_files} files are valid")
    return bool(num_wrong)


def _sarif(text: str, options: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        program, output = Path(folder) / "a program.py", Path(folder) / "x.sarif"
        program.write_text(text, encoding="utf-8")
        done = gradinspect("check", program, "-o", output, *(one for one in options if one == "--gradcheck"))
        if not output.exists():
            raise SystemExit(done.stderr)
        return output.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

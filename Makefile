# `make check` is what a change must pass; .ci/run does the same in a fresh environment.
check:
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	pytest -q -n 2

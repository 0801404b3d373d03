"""Before torch is imported: as many workers as cores run the tests, so each of them, and what it starts, has one."""

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other by spinning slow all others down
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each of a thousand runs would compile our package again

# No test is about time: on a busy machine, drawing examples takes long too. Where CI says so, every run draws the same.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("CI", settings.get_profile("any machine"), derandomize=True, database=None)
settings.load_profile("CI" if os.environ.get("CI") == "true" else "any machine")

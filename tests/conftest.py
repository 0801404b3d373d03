"""Before torch is imported: as many workers as cores run the tests, so each of them, and what it starts, has one."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other by spinning slow all others down

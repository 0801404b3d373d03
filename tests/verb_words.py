"""A command line of each verb, for a folder with the capture run.json and the program train.py."""

from gradinspect.cli.verbs import VERBS

WORDS: dict[str, tuple[str, ...]] = dict.fromkeys(VERBS, ("run.json",)) | {
    "find": ("run.json", "bytes>0"),
    "fit": ("train.py",),
    "plan": ("train.py", "--fit", "1GiB"),
    "check": ("train.py",),
    "step": ("train.py",),
    "diff": ("run.json", "run.json"),
    "explain": ("GI101",),
    "export": ("run.json", "-o", "out.json", "--force"),
}

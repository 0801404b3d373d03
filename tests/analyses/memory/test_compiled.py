"""What compiled nodes keep, in sentences."""

from gradinspect.analyses.memory.compiled import CompiledKept, kept_sentences


def test_nodes_that_keep_the_same_share_a_sentence() -> None:
    """However many operators each has; one that differs has its own."""
    same = [CompiledKept(node=number, operators=number, too_bytes=1000, recomputed=2) for number in (4, 26, 70)]
    other = CompiledKept(node=90, operators=5, only_bytes=8, unknown_bytes=16, recomputed=1, recomputed_flops=2_000)
    none = CompiledKept(node=99, operators=1)
    bare = CompiledKept(node=100, operators=1, unknown_bytes=8, is_stripped=True)

    assert [(text, len(group)) for text, group in kept_sentences([*same, other, none, bare])] == [
        ("#4 and 2 others each keep 1000 B that eager keeps too; compute 2 operators again", 3),
        (
            "#90 keeps 8 B that eager does not keep, 16 B that eager may keep, too; computes 1 operator again "
            "(2.0 k FLOPs)",
            1,
        ),
        ("#99 keeps nothing; computes nothing again", 1),
        ("#100 keeps 8 B; whether eager does too and what is computed again is not known", 1),
    ]

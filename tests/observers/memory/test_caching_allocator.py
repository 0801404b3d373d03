"""The blocks of CUDA's caching allocator."""

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.observers.memory.caching_allocator import MIB, CachingAllocator, MemoryBlock


def test_small_blocks_share_segments_of_two_mebibytes() -> None:
    """Rounded up to 512 B, up to 1 MiB."""
    allocator = CachingAllocator()
    allocator.allocate(1)
    allocator.allocate(513)
    allocator.allocate(MIB)

    assert (allocator.allocated, allocator.reserved) == (512 + 1024 + MIB, 2 * MIB)


def test_middle_blocks_share_segments_of_twenty_and_large_ones_are_rounded_to_two() -> None:
    """From 10 MiB on each has its own."""
    allocator = CachingAllocator()
    allocator.allocate(MIB + 1)
    allocator.allocate(9 * MIB)
    allocator.allocate(11 * MIB)

    assert allocator.allocated == MIB + 512 + 9 * MIB + 12 * MIB
    assert allocator.reserved == 20 * MIB + 12 * MIB


def test_a_large_block_is_split_only_if_more_than_a_mebibyte_is_left() -> None:
    """Otherwise it is given out whole, and counts whole."""
    allocator = CachingAllocator()
    whole = allocator.allocate(12 * MIB)
    assert whole is not None
    allocator.give_back(whole)
    allocator.allocate(11 * MIB)

    assert (allocator.allocated, allocator.reserved) == (12 * MIB, 12 * MIB)


def test_freed_neighbors_are_joined_and_the_smallest_block_that_is_large_enough_is_taken() -> None:
    """So that a segment is used again, also for something larger than each part."""
    allocator = CachingAllocator()
    parts = [allocator.allocate(5 * MIB) for _ in range(4)]
    for part in parts[:2]:
        assert part is not None
        allocator.give_back(part)
    allocator.allocate(9 * MIB)

    assert allocator.reserved == 20 * MIB


@given(st.lists(st.tuples(st.integers(0, 30 * MIB), st.booleans(), st.integers(0, 9)), max_size=60), st.booleans())
def test_nothing_is_lost(actions: list[tuple[int, bool, int]], grows: bool) -> None:  # drawn
    """What is given out adds up, no more than is reserved; given back, all of it is free in whole segments."""
    allocator = CachingAllocator(lambda: grows)
    blocks: list[MemoryBlock] = []
    for size, is_new, which in actions:
        if is_new or not blocks:
            block = allocator.allocate(size)
            assert (block is None) == (size == 0)
            if block is not None:
                assert block.num_bytes >= size
                blocks.append(block)
        else:
            allocator.give_back(blocks.pop(which % len(blocks)))
        assert sum(block.num_bytes for block in blocks) == allocator.allocated <= allocator.reserved
    for block in blocks:
        allocator.give_back(block)

    assert allocator.allocated == 0
    assert sum(block.num_bytes for block in allocator._at.values()) == allocator.reserved
    assert all(block.before is block.after is None for block in allocator._at.values())


def expandable() -> CachingAllocator:
    """Make one whose segments grow."""
    return CachingAllocator(lambda: True)


def test_a_segment_grows_by_what_its_free_end_lacks() -> None:
    """By pages of 20 MiB, of 2 MiB for small blocks; any rest is split off."""
    allocator = expandable()
    allocator.allocate(15 * MIB)
    allocator.allocate(30 * MIB)
    allocator.allocate(MIB // 2)

    assert allocator.allocated == 45 * MIB + MIB // 2
    assert allocator.reserved == 20 * MIB + 40 * MIB + 2 * MIB

    last = allocator.allocate(16 * MIB)
    assert last is not None

    assert allocator.reserved == 80 * MIB + 2 * MIB

    allocator.give_back(last)
    allocator.allocate(19 * MIB)

    assert allocator.reserved == 80 * MIB + 2 * MIB


def test_growing_segments_do_not_keep_odd_sizes_apart() -> None:
    """What batches of changing sizes leave in segments of their own is one block here."""
    reserved = []
    for allocator in (CachingAllocator(), expandable()):
        for size in range(11, 60, 2):
            block = allocator.allocate(size * MIB)
            assert block is not None
            allocator.give_back(block)
        reserved.append(allocator.reserved)

    assert reserved == [sum(range(12, 61, 2)) * MIB, 60 * MIB]


def test_a_block_that_another_stream_uses_is_not_given_out_at_once() -> None:
    """It counts as given back, as torch counts; it is free when the streams have caught up."""
    allocator = CachingAllocator()
    block = allocator.allocate(12 * MIB)
    assert block is not None
    allocator.use(block, 7)
    allocator.give_back(block)
    allocator.allocate(12 * MIB)

    assert (allocator.allocated, allocator.reserved) == (12 * MIB, 24 * MIB)

    allocator.catch_up()
    allocator.allocate(12 * MIB)

    assert (allocator.allocated, allocator.reserved) == (24 * MIB, 24 * MIB)


def test_streams_do_not_share_blocks() -> None:
    """What was made on one is free for that one; its own use is no other one."""
    allocator = CachingAllocator()
    block = allocator.allocate(12 * MIB, stream=1)
    assert block is not None
    allocator.use(block, 1)
    allocator.give_back(block)
    allocator.allocate(12 * MIB)

    assert allocator.reserved == 24 * MIB

    allocator.allocate(12 * MIB, stream=1)

    assert allocator.reserved == 24 * MIB

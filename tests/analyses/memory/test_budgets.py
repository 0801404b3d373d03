"""How much is alive while a graph runs operator by operator."""

from gradinspect.analyses.memory.budgets import Work, most_alive


def work(made: dict[int, int], *used: int) -> Work:
    """An operator."""
    return Work(made, frozenset(used))


def test_a_result_is_alive_until_its_last_use() -> None:
    """2 and 3 are never there together with 1 and 4."""
    steps = [work({1: 10}), work({2: 20}, 1), work({3: 30}, 2), work({4: 5}, 3)]

    assert most_alive(steps, {}, (), ()) == 50


def test_what_stays_counts_to_the_end() -> None:
    """The saved storage 1 is there when 3 and 4 are."""
    steps = [work({1: 10}), work({2: 20}, 1), work({3: 30}, 2), work({4: 5}, 3)]

    assert most_alive(steps, {}, (1,), ()) == 60


def test_what_is_given_goes_when_it_was_used_last() -> None:
    """Saved tensors of a backward are freed while it runs; what is never used is there to its end."""
    steps = [work({3: 30}, 1), work({4: 40}, 2)]

    assert most_alive(steps, {1: 100, 2: 10, 9: 1}, (3, 4), ()) == 141
    assert most_alive([], {1: 100}, (), ()) == 100


def test_a_view_makes_no_storage_and_inputs_are_counted_elsewhere() -> None:
    """A view of the input 1 has its storage; 2 is alive as long as its view is used."""
    steps = [work({1: 100}, 1), work({2: 20}, 1), work({2: 20}, 2), work({3: 30}, 2), work({4: 1}, 3)]

    assert most_alive(steps, {}, (), (1,)) == 50


def test_what_a_kernel_has_for_itself_counts_while_it_runs() -> None:
    """Beside what is alive, with its own results; 3 is made when the scratch memory of 2 is gone."""
    steps = [work({1: 10}), Work({2: 20}, frozenset({1}), peak_bytes=70), work({3: 30}, 2)]

    assert most_alive(steps, {}, (), ()) == 80
    assert most_alive([*steps, Work({4: 5}, frozenset({3}), peak_bytes=45)], {9: 1}, (), ()) == 81

"""What was read in real steps is read again in its order, by place and shape."""

from gradinspect.fake.read_values import ReadPlace, ReplayedReads, number_of
from gradinspect.reads import ReadValues, TensorRead

HERE = ReadPlace("train.py", 3, "aten._local_scalar_dense.default", in_backward=False)
AGAIN = HERE._replace(in_backward=True)


def read(number: str, place: ReadPlace = HERE, shape: tuple[int, ...] = ()) -> TensorRead:
    """Make a read of an integer."""
    return TensorRead(**place._asdict(), shapes=(shape,), number=number, kind="int")


class Running:
    """Says that module 1 runs, and how many backward calls have begun."""

    num_calls = 0

    def __call__(self) -> tuple[object, int]:
        """Say so."""
        return 1, self.num_calls


def numbers(replayed: ReplayedReads, place: ReadPlace, times: int) -> list[object]:
    """Read several times."""
    found = [replayed.take(place, ((),)) for _ in range(times)]
    return [None if one is None else number_of(one) for one in found]


def test_each_line_has_its_own_order() -> None:
    """And what it reads too often has no answer."""
    other = HERE._replace(line=9)
    replayed = ReplayedReads(ReadValues(num_steps=1, reads=(read("1"), read("7", other), read("2"))), Running())

    assert numbers(replayed, HERE, 3) == [1, 2, None]
    assert numbers(replayed, other, 2) == [7, None]


def test_what_has_another_shape_has_no_answer() -> None:
    """The two runs have parted."""
    replayed = ReplayedReads(ReadValues(num_steps=1, reads=(read("1", shape=(3,)),)), Running())

    assert replayed.take(HERE, ((4,),)) is None


def test_a_block_that_runs_again_reads_what_its_forward_has_read() -> None:
    """Of the step that it belongs to, also where no real step has run it again."""
    running = Running()
    replayed = ReplayedReads(ReadValues(num_steps=2, reads=tuple(read(str(one)) for one in (1, 2, 3, 4))), running)
    first = numbers(replayed, HERE, 2)
    running.num_calls = 1
    second = numbers(replayed, HERE, 2)
    running.num_calls = 2

    assert (first, second) == ([1, 2], [3, 4])
    assert numbers(replayed, AGAIN, 3) == [3, 4, None]


def test_a_block_that_ran_again_in_real_steps_reads_what_it_read_there() -> None:
    """Before what its forward has read."""
    replayed = ReplayedReads(ReadValues(num_steps=1, reads=(read("1"), read("5", AGAIN))), Running())
    numbers(replayed, HERE, 1)

    assert numbers(replayed, AGAIN, 1) == [5]

"""The IP queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.queues import DropTail


@given(st.integers(1, 200), st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=80))))
def test_a_fifo_that_never_holds_more_than_its_limit(limit: int, steps: list[bytes | None]) -> None:
    queue, model, drops = DropTail(limit), [], 0
    for step in steps:
        if step is None:
            if model:
                assert queue.pop() == model.pop(0)
            else:
                with pytest.raises(IndexError):
                    queue.pop()
        else:
            fits = sum(map(len, model)) + len(step) <= limit
            assert queue.push(step) is fits
            if fits:
                model.append(step)
            else:
                drops += 1
        assert (len(queue), queue.nbytes, queue.drops) == (len(model), sum(map(len, model)), drops)


def test_a_packet_that_just_fits_is_taken() -> None:
    queue = DropTail(3)
    assert queue.push(b"abc")
    assert not queue.push(b"d")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_queue_without_room_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="limit_bytes"):
        DropTail(limit)

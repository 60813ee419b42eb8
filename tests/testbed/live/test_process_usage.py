"""What a process says it needs of its machine, by made-up clocks and by the real ones."""

import resource

from testbed.live.process_usage import Usage, resident_bytes


def test_processor_time_is_that_since_the_last_call() -> None:
    clock = iter([0, 100, 300, 300])
    processor = iter([50, 100, 100, 100])
    usage = Usage(lambda: next(clock), lambda: next(processor))
    assert [usage.processor_percent() for _ in range(3)] == [50.0, 0.0, 0.0]


def test_busy_work_is_seen() -> None:
    usage = Usage()
    sum(range(3_000_000))
    assert usage.processor_percent() > 1


def test_resident_memory_is_what_the_kernel_counts() -> None:
    most_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert most_bytes / 10 < resident_bytes() <= most_bytes * 1.05

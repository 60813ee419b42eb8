"""A progress bar for work in countable parts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr; without a terminal, a line every ten seconds."""
    from time import monotonic

    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    from testbed.results.show import LINE_S, bars_of

    told_at = monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with bars_of(*columns) as bars:
        task = bars.add_task(name, total=None)

        def tell(done: int, of: int) -> None:
            nonlocal told_at
            bars.update(task, completed=done, total=of)
            if not bars.console.is_terminal and monotonic() - told_at >= LINE_S:
                told_at = monotonic()
                bars.console.print(f"{name}: {done} of {of} {unit}", highlight=False)

        yield tell

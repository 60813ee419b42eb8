"""The reports of all ends of a run's transfers, as they come."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import overload

from typing_extensions import override

from hosts.engine.delays import Counts, Delays
from hosts.engine.results import EndReport, Received, Sent

#: what an end has sent or received with
Kind = type[Sent] | type[Received]


class EndReports(Sequence[EndReport]):
    """All reports so far, in the order in which they came, without the delays of their packets.

    Delays count by flow and kind of end: a day has thousands of short transfers, and a list of delays for each would
    fill the memory.
    """

    def __init__(self, reports: Iterable[EndReport] = ()) -> None:
        self._reports: list[EndReport] = []
        self._delays: defaultdict[tuple[str, Kind], Delays] = defaultdict(Delays)
        for report in reports:
            self.append(report)

    def append(self, report: EndReport) -> None:
        """Take the next one."""
        result = report.result
        if isinstance(result, Received):
            self._delays[report.flow, type(result)].merge(result.delays)
            result = replace(result, delays=())
        else:
            self._delays[report.flow, type(result)].merge(result.round_trips)
            result = replace(result, round_trips=())
        self._reports.append(replace(report, result=result))

    def delays(self, flow: str, kinds: Iterable[Kind]) -> Counts:
        """Return the delays of a flow's packets, at its ends of these kinds.

        They are one-way delays of what has received, and round trips of what has sent.
        """
        total = Delays()
        for kind in kinds:
            if (found := self._delays.get((flow, kind))) is not None:
                total.merge(found.counts())
        return total.counts()

    @override
    def __len__(self) -> int:
        return len(self._reports)

    @overload
    def __getitem__(self, index: int) -> EndReport: ...

    @overload
    def __getitem__(self, index: slice) -> list[EndReport]: ...

    @override
    def __getitem__(self, index: int | slice) -> EndReport | list[EndReport]:
        return self._reports[index]

"""The counts of a station from its parts, in real time and in virtual time."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from channel.hop import Hop
from linklayer.link import LinkCounters
from linklayer.queues import Queue
from linklayer.station_counts import StationCounts


def count_station(counters: LinkCounters, hop: Hop[Any], queues: Iterable[Queue], **others: int) -> StationCounts:
    """Return the counts of a link, a hop and queues together; `others` are the remaining fields."""
    return StationCounts(
        **{field.name: getattr(counters, field.name) for field in fields(LinkCounters)},
        frames=hop.frames,
        frame_bytes=hop.bytes,
        queue_bytes=sum(queue.nbytes for queue in queues),
        corruption_losses=hop.erased + hop.damaged,
        **others,
    )

"""The IP queues of a scenario's stations."""

from common.sides import Side
from linklayer.classify import FAST, RELIABLE
from linklayer.queues import QUEUES, Queue, QueueContext
from testbed.scenario.channel_models import frame_ns, make_rng
from testbed.scenario.plugin_options import options_of
from testbed.scenario.schema import Scenario


def make_queues(scenario: Scenario, side: Side) -> tuple[Queue, ...]:
    """Return the IP queues of the station that transmits on `side`, by channel."""
    link, direction = scenario.link, scenario.channel.direction(side)
    plugin = QUEUES[link.queue.kind]
    return tuple(
        plugin.make(
            options_of(link.queue, plugin.options),
            QueueContext(
                limit_bytes=link.ip_queue_bytes,
                mtu_bytes=scenario.mtu,
                packet_time_ns=frame_ns(direction, scenario.max_frame_bytes),
                rng=make_rng(scenario.seed, "queue", side, str(channel)),
            ),
        )
        for channel in (RELIABLE, FAST)
    )

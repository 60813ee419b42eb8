"""InfluxDB: writes a run's records to a database, and reads records back.

Read in this order:

- `errors.py`: errors, by the sink's reaction;
- `line.py`: records to line protocol;
- `client.py`: `Influx`, one database over HTTP;
- `spool.py`: batches on disk while the database is away;
- `sink.py`: `InfluxSink`, which uses these in a thread;
- `server.py`: `InfluxServer`, Debian's influxd as a supervised child;
- `tail.py`: `InfluxTail`, new records read back.

Schema, promises and servers: docs/telemetry.md.
"""

from telemetry.influx.client import DATABASE, Influx, Series, read_token
from telemetry.influx.errors import InfluxError
from telemetry.influx.server import InfluxServer
from telemetry.influx.sink import InfluxSink, SinkStatus
from telemetry.influx.tail import InfluxTail

__all__ = [
    "DATABASE",
    "Influx",
    "InfluxError",
    "InfluxServer",
    "InfluxSink",
    "InfluxTail",
    "Series",
    "SinkStatus",
    "read_token",
]

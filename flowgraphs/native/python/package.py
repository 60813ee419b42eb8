"""GNU Radio blocks for frames over radio: OFDM bursts of liquid-dsp's flexible frames."""

from gnuradio.fadelab.fadelab_python import *  # noqa: F403

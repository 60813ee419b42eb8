"""liquid-dsp's OFDM flexible frames, as a C library, and the frames of PHY `ofdm` as liquid's own modulator makes them.

Read first: https://liquidsdr.org/doc/ofdmflexframe, and liquid.h, "ofdmflexframegen".

Schemes are looked up by liquid's own names, whose numbers are not part of its interface.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import cffi
import numpy as np

from flowgraphs.phy import Samples
from flowgraphs.phys.ofdm.modem import OfdmPhy

#: our part of the header: sequence number, network
HEADER = struct.Struct(">IH")
#: our names of the codes, with liquid's
FEC = {name: name for name in ("none", "rep3", "rep5", "secded2216", "secded3932", "secded7264")} | {
    "hamming74": "h74",
    "hamming84": "h84",
    "hamming128": "h128",
    "golay2412": "g2412",
}

ffi = cffi.FFI()
# complex samples are pairs of floats, which is C's layout of float complex
ffi.cdef(
    """
    int liquid_getopt_str2mod(const char * name);
    int liquid_getopt_str2fec(const char * name);
    int liquid_getopt_str2crc(const char * name);

    typedef struct {
        unsigned int check;
        unsigned int fec0;
        unsigned int fec1;
        unsigned int mod_scheme;
    } ofdmflexframegenprops_s;

    typedef struct ofdmflexframegen_s * ofdmflexframegen;
    ofdmflexframegen ofdmflexframegen_create(unsigned int M, unsigned int cp_len, unsigned int taper_len,
        unsigned char * p, ofdmflexframegenprops_s * props);
    int ofdmflexframegen_destroy(ofdmflexframegen q);
    int ofdmflexframegen_set_header_len(ofdmflexframegen q, unsigned int len);
    unsigned int ofdmflexframegen_getframelen(ofdmflexframegen q);
    int ofdmflexframegen_assemble(ofdmflexframegen q, const unsigned char * header, const unsigned char * payload,
        unsigned int payload_len);
    int ofdmflexframegen_write(ofdmflexframegen q, float * samples, unsigned int n);

    void srand(unsigned int seed);
    """
)


@cache
def liquid() -> Any:
    """The library, in the version that the native module was built with."""
    return ffi.dlopen("libliquid.so.1")


def make(create: Callable[..., Any], destroy: Callable[[Any], Any], *arguments: Any) -> Any:
    """Return the object that `create` makes of the arguments; it is destroyed with the last reference to it."""
    return ffi.gc(create(*arguments), destroy)


def generator(of: OfdmPhy, modulation: str, fec: str, fec1: str = "none") -> Any:
    """Return liquid's modulator for frames in the shape of a PHY, with our header's length and a CRC-32."""
    library = liquid()
    numbers = {
        "check": library.liquid_getopt_str2crc(b"crc32"),
        "fec0": library.liquid_getopt_str2fec(FEC[fec].encode()),
        "fec1": library.liquid_getopt_str2fec(FEC[fec1].encode()),
        "mod_scheme": library.liquid_getopt_str2mod(modulation.encode()),
    }
    made = make(
        *(library.ofdmflexframegen_create, library.ofdmflexframegen_destroy),
        *(of.subcarriers, of.cyclic_prefix, of.taper, ffi.NULL, ffi.new("ofdmflexframegenprops_s *", numbers)),
    )
    library.ofdmflexframegen_set_header_len(made, HEADER.size)
    return made


def burst(of: OfdmPhy, made: Any, sequence: int, frame: bytes, nsamples: int) -> Samples:
    """Return the first samples (complex64) of a frame as liquid's modulator makes them."""
    library = liquid()
    samples = np.empty(nsamples, np.complex64)
    library.ofdmflexframegen_assemble(made, HEADER.pack(sequence, of.network), frame, len(frame))
    # the bits that fill the last symbol are drawn
    library.srand(1)
    library.ofdmflexframegen_write(made, ffi.from_buffer("float[]", samples, require_writable=True), nsamples)
    samples *= of.rms
    return samples

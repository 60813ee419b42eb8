"""liquid-dsp's OFDM flexible frames, as a C library: what of its interface is used here, and how it is loaded.

Read first: https://liquidsdr.org/doc/ofdmflexframe, and liquid.h, "ofdmflexframegen" and "ofdmflexframesync".

Rules kept: the library is loaded once, when it is first needed. Schemes are looked up by liquid's own names, whose
numbers are not part of its interface. Objects are made and ended by `make`: FFTW's planner, which they call, is not
thread-safe. A call lets other Python threads run.

Left out: any logic; that is `modem.py`'s.
"""

from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any

import cffi

from flowgraphs.phy import PhyError

#: held while making or ending liquid's objects, and while using what is global in C (rand)
LOCK = RLock()

_SONAME = "libliquid.so.1"
#: versions with these declarations: user header lengths came with 1.4, later ones than 1.5 were not tried
_VERSIONS = ("1.4.", "1.5.")

ffi = cffi.FFI()
# complex samples are pairs of floats, which is C's layout of float complex
ffi.cdef(
    """
    const char * liquid_libversion(void);
    int liquid_getopt_str2mod(const char * name);
    int liquid_getopt_str2fec(const char * name);
    int liquid_getopt_str2crc(const char * name);

    typedef struct {
        float evm;                   // of the header's symbols, dB
        float rssi;
        float cfo;                   // radians per sample
        float * framesyms;           // equalised payload symbols, complex
        unsigned int num_framesyms;
        unsigned int mod_scheme;
        unsigned int mod_bps;
        unsigned int check;
        unsigned int fec0;
        unsigned int fec1;
    } framesyncstats_s;

    typedef int (*framesync_callback)(unsigned char * header, int header_valid, unsigned char * payload,
        unsigned int payload_len, int payload_valid, framesyncstats_s stats, void * userdata);

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

    typedef struct ofdmflexframesync_s * ofdmflexframesync;
    ofdmflexframesync ofdmflexframesync_create(unsigned int M, unsigned int cp_len, unsigned int taper_len,
        unsigned char * p, framesync_callback callback, void * userdata);
    int ofdmflexframesync_destroy(ofdmflexframesync q);
    int ofdmflexframesync_set_header_len(ofdmflexframesync q, unsigned int len);
    int ofdmflexframesync_execute(ofdmflexframesync q, float * samples, unsigned int n);

    int ofdmframe_init_default_sctype(unsigned int M, unsigned char * p);

    typedef struct packetizer_s * packetizer;
    packetizer packetizer_create(unsigned int n, int crc, int fec0, int fec1);
    int packetizer_destroy(packetizer p);
    int packetizer_decode(packetizer p, const unsigned char * coded, unsigned char * message);
    unsigned int packetizer_compute_enc_msg_len(unsigned int n, int crc, int fec0, int fec1);

    typedef struct modemcf_s * modemcf;
    modemcf modemcf_create(int scheme);
    int modemcf_destroy(modemcf q);
    int modemcf_modulate(modemcf q, unsigned int symbol, float * point);

    typedef struct msequence_s * msequence;
    msequence msequence_create_default(unsigned int m);
    int msequence_destroy(msequence q);
    unsigned int msequence_advance(msequence q);

    void srand(unsigned int seed);
    """
)


@cache
def liquid() -> Any:
    """Return the library; raises PhyError when it is missing or too new to be trusted."""
    try:
        library = ffi.dlopen(_SONAME)
    except OSError as error:
        raise PhyError(f"PHY ofdm needs liquid-dsp ({error}): apt-get install libliquid1") from None
    version = ffi.string(library.liquid_libversion()).decode()
    if not version.startswith(_VERSIONS):
        raise PhyError(f"PHY ofdm knows liquid-dsp 1.4 and 1.5, {_SONAME} is {version}: install Debian's libliquid1")
    return library


def make(create: Callable[..., Any], destroy: Callable[[Any], Any], *arguments: Any) -> Any:
    """Return the object that `create` makes of the arguments; it is destroyed with the last reference to it."""

    def end(made: Any) -> None:
        with LOCK:
            destroy(made)

    with LOCK:
        return ffi.gc(create(*arguments), end)

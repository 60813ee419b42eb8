#include "pdu.hpp"

#include <cmath>

namespace gr::fadelab {

const pmt::pmt_t& frames_port() {
    static const pmt::pmt_t port = pmt::mp("frames");
    return port;
}

pmt::pmt_t pdu_of(const ofdm::Report& report, double rate_sps) {
    static const pmt::pmt_t crc_ok = pmt::mp("crc_ok");
    static const pmt::pmt_t sequence = pmt::mp("sequence");
    static const pmt::pmt_t sample = pmt::mp("sample");
    static const pmt::pmt_t nsamples = pmt::mp("nsamples");
    static const pmt::pmt_t snr_db = pmt::mp("snr_db");
    static const pmt::pmt_t evm_db = pmt::mp("evm_db");
    static const pmt::pmt_t cfo_hz = pmt::mp("cfo_hz");
    static const pmt::pmt_t rssi_db = pmt::mp("rssi_db");
    static const pmt::pmt_t mode = pmt::mp("mode");
    pmt::pmt_t about = pmt::make_dict();
    about = pmt::dict_add(about, crc_ok, pmt::from_bool(report.crc_ok));
    about = pmt::dict_add(about, sequence, pmt::from_long(report.sequence));
    about = pmt::dict_add(about, sample, pmt::from_uint64(report.sample));
    about = pmt::dict_add(about, nsamples, pmt::from_uint64(report.nsamples));
    about = pmt::dict_add(about, snr_db, pmt::from_double(report.snr_db));
    about = pmt::dict_add(about, evm_db, pmt::from_double(report.evm_db));
    about = pmt::dict_add(about, cfo_hz, pmt::from_double(report.cfo / (2.0 * M_PI) * rate_sps));
    about = pmt::dict_add(about, rssi_db, pmt::from_double(report.rssi_db));
    about = pmt::dict_add(about, mode, pmt::mp(report.mode));
    return pmt::cons(about, pmt::init_u8vector(report.payload.size(), report.payload));
}

}  // namespace gr::fadelab

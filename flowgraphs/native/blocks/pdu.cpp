#include "pdu.hpp"

#include <cmath>

namespace gr::fadelab {

namespace {

// Keys of a received PDU's dictionary.
struct Keys {
    pmt::pmt_t crc_ok = pmt::mp("crc_ok");
    pmt::pmt_t sequence = pmt::mp("sequence");
    pmt::pmt_t sample = pmt::mp("sample");
    pmt::pmt_t nsamples = pmt::mp("nsamples");
    pmt::pmt_t snr_db = pmt::mp("snr_db");
    pmt::pmt_t evm_db = pmt::mp("evm_db");
    pmt::pmt_t cfo_hz = pmt::mp("cfo_hz");
    pmt::pmt_t rssi_db = pmt::mp("rssi_db");
    pmt::pmt_t mode = pmt::mp("mode");
};

const Keys& keys() {
    static const Keys keys;
    return keys;
}

bool whole(const pmt::pmt_t& about, const pmt::pmt_t& key, std::uint64_t& value) {
    const pmt::pmt_t found = pmt::dict_ref(about, key, pmt::PMT_NIL);
    if (pmt::is_uint64(found)) {
        value = pmt::to_uint64(found);
    } else if (pmt::is_integer(found) && pmt::to_long(found) >= 0) {
        value = static_cast<std::uint64_t>(pmt::to_long(found));
    } else {
        return false;
    }
    return true;
}

std::optional<double> real(const pmt::pmt_t& about, const pmt::pmt_t& key) {
    const pmt::pmt_t found = pmt::dict_ref(about, key, pmt::PMT_NIL);
    return pmt::is_real(found) ? std::make_optional(pmt::to_double(found)) : std::nullopt;
}

}  // namespace

const pmt::pmt_t& frames_port() {
    static const pmt::pmt_t port = pmt::mp("frames");
    return port;
}

pmt::pmt_t pdu_of(const ofdm::Report& report, double rate_sps) {
    const Keys& key = keys();
    pmt::pmt_t about = pmt::make_dict();
    about = pmt::dict_add(about, key.crc_ok, pmt::from_bool(report.crc_ok));
    about = pmt::dict_add(about, key.sequence, pmt::from_long(report.sequence));
    about = pmt::dict_add(about, key.sample, pmt::from_uint64(report.sample));
    about = pmt::dict_add(about, key.nsamples, pmt::from_uint64(report.nsamples));
    about = pmt::dict_add(about, key.snr_db, pmt::from_double(report.snr_db));
    about = pmt::dict_add(about, key.evm_db, pmt::from_double(report.evm_db));
    about = pmt::dict_add(about, key.cfo_hz, pmt::from_double(report.cfo / (2.0 * M_PI) * rate_sps));
    about = pmt::dict_add(about, key.rssi_db, pmt::from_double(report.rssi_db));
    about = pmt::dict_add(about, key.mode, pmt::mp(report.mode));
    return pmt::cons(about, pmt::init_u8vector(report.payload.size(), report.payload));
}

bool frame_from(const pmt::pmt_t& pdu, frame_box::frame& received) {
    if (!pmt::is_pair(pdu) || !pmt::is_u8vector(pmt::cdr(pdu)) || !pmt::is_dict(pmt::car(pdu))) {
        return false;
    }
    const Keys& key = keys();
    const pmt::pmt_t about = pmt::car(pdu);
    const pmt::pmt_t crc_ok = pmt::dict_ref(about, key.crc_ok, pmt::PMT_NIL);
    if (!pmt::is_bool(crc_ok) || !whole(about, key.sequence, received.sequence) ||
        !whole(about, key.sample, received.sample) || !whole(about, key.nsamples, received.nsamples)) {
        return false;
    }
    received.crc_ok = pmt::to_bool(crc_ok);
    received.snr_db = real(about, key.snr_db);
    received.evm_db = real(about, key.evm_db);
    received.cfo_hz = real(about, key.cfo_hz);
    received.rssi_db = real(about, key.rssi_db);
    const pmt::pmt_t mode = pmt::dict_ref(about, key.mode, pmt::PMT_NIL);
    if (pmt::is_symbol(mode)) {
        received.mode = pmt::symbol_to_string(mode);
    }
    std::size_t count = 0;
    const std::uint8_t* octets = pmt::u8vector_elements(pmt::cdr(pdu), count);
    received.payload.assign(octets, octets + count);
    return true;
}

}  // namespace gr::fadelab

#include "pdu.hpp"

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

}  // namespace

const pmt::pmt_t& frames_port() {
    static const pmt::pmt_t port = pmt::mp("frames");
    return port;
}

bool holds_octets(const pmt::pmt_t& message) {
    return pmt::is_pair(message) && pmt::is_u8vector(pmt::cdr(message));
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

pmt::pmt_t pdu_of(const frame_box::frame& received) {
    const Keys& key = keys();
    pmt::pmt_t about = pmt::make_dict();
    about = pmt::dict_add(about, key.crc_ok, pmt::from_bool(received.crc_ok));
    about = pmt::dict_add(about, key.sequence, pmt::from_long(static_cast<long>(received.sequence)));
    about = pmt::dict_add(about, key.sample, pmt::from_uint64(received.sample));
    about = pmt::dict_add(about, key.nsamples, pmt::from_uint64(received.nsamples));
    const auto add = [&](const pmt::pmt_t& name, const std::optional<double>& figure) {
        if (figure) {
            about = pmt::dict_add(about, name, pmt::from_double(*figure));
        }
    };
    add(key.snr_db, received.snr_db);
    add(key.evm_db, received.evm_db);
    add(key.cfo_hz, received.cfo_hz);
    add(key.rssi_db, received.rssi_db);
    if (received.mode) {
        about = pmt::dict_add(about, key.mode, pmt::mp(*received.mode));
    }
    return pmt::cons(about, pmt::init_u8vector(received.payload.size(), received.payload));
}

bool frame_from(const pmt::pmt_t& pdu, frame_box::frame& received) {
    if (!holds_octets(pdu) || !pmt::is_dict(pmt::car(pdu))) {
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

// Frames as GNU Radio's messages: pairs of a dictionary and a u8vector.

#pragma once

#include <gnuradio/fadelab/frame_box.h>
#include <pmt/pmt.h>

#include <cstdint>
#include <optional>

namespace gr::fadelab {

// The name of the message ports.
const pmt::pmt_t& frames_port();
// Whether a message is a pair with octets, as in a PDU.
bool holds_octets(const pmt::pmt_t& message);
// A whole number in a dictionary: false when it has none of that name.
bool whole(const pmt::pmt_t& about, const pmt::pmt_t& key, std::uint64_t& value);
// Likewise a real number.
std::optional<double> real(const pmt::pmt_t& about, const pmt::pmt_t& key);
// The PDU of a received frame.
pmt::pmt_t pdu_of(const frame_box::frame& received);
// The frame in a receiver's PDU; false for any other message.
bool frame_from(const pmt::pmt_t& pdu, frame_box::frame& received);

}  // namespace gr::fadelab

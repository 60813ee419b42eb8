// Frames as GNU Radio's messages: pairs of a dictionary and a u8vector.

#pragma once

#include <pmt/pmt.h>

#include "../ofdm/demodulator.hpp"

namespace gr::fadelab {

// The name of the message ports.
const pmt::pmt_t& frames_port();
// The PDU of a received frame.
pmt::pmt_t pdu_of(const ofdm::Report& report, double rate_sps);

}  // namespace gr::fadelab

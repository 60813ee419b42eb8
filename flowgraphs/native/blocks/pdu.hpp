// Frames as GNU Radio's messages: pairs of a dictionary and a u8vector.

#pragma once

#include <gnuradio/fadelab/frame_box.h>
#include <pmt/pmt.h>

#include "../ofdm/demodulator.hpp"

namespace gr::fadelab {

// The name of the message ports.
const pmt::pmt_t& frames_port();
// The PDU of a received frame.
pmt::pmt_t pdu_of(const ofdm::Report& report, double rate_sps);
// The frame in a receiver's PDU; false for any other message.
bool frame_from(const pmt::pmt_t& pdu, frame_box::frame& received);

}  // namespace gr::fadelab

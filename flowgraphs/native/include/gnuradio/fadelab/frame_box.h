#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gr::fadelab {

// Frames into a flowgraph and out of it, for a program that waits on a descriptor. Message ports: "send" out, a PDU for
// each posted frame; "received" in, a receiver's PDUs; "events" in, the messages of gr-uhd's sink; "departed" in, numbers
// of frames that have left, as of a channel access.
//
// A message that is no received frame is reported to the log and left out.
class FADELAB_API frame_box : virtual public block {
public:
    using sptr = std::shared_ptr<frame_box>;

    // A receiver's report; figures that its PHY does not have are absent.
    struct frame {
        std::vector<std::uint8_t> payload;
        bool crc_ok = false;
        std::uint64_t sequence = 0;
        std::uint64_t sample = 0;
        std::uint64_t nsamples = 0;
        std::optional<double> snr_db;
        std::optional<double> evm_db;
        std::optional<double> cfo_hz;
        std::optional<double> rssi_db;
        std::optional<std::string> mode;
    };

    static sptr make();

    // Sends a frame into the flowgraph; `mode`: in this mode, by name, where the transmitter offers several.
    virtual void send(const std::uint8_t* octets, std::size_t count, const std::string& mode = "") = 0;
    // Takes all received frames, oldest first; none makes `eventfd` unreadable.
    virtual std::vector<frame> take() = 0;
    // A descriptor that is readable once a frame has been received, or frames have left.
    virtual int eventfd() const = 0;
    // Messages of a device that had samples too late.
    virtual std::uint64_t late() const = 0;
    // Bursts of which a device has said that they are on the air.
    virtual std::uint64_t acknowledged() const = 0;
    // Frames that have left, by the messages on port "departed".
    virtual std::uint64_t departed() const = 0;
    // Closes the descriptor; for when the flowgraph has ended.
    virtual void close() = 0;
};

}  // namespace gr::fadelab

// The Python module gnuradio.fadelab: the blocks, and the same modulator and demodulator without a flowgraph.

#include <gnuradio/fadelab/burst_guard.h>
#include <gnuradio/fadelab/channel_access.h>
#include <gnuradio/fadelab/frame_box.h>
#include <gnuradio/fadelab/idle_filler.h>
#include <gnuradio/fadelab/ofdm_receiver.h>
#include <gnuradio/fadelab/ofdm_transmitter.h>
#include <gnuradio/fadelab/sample_meter.h>
#include <gnuradio/fadelab/wifi_framer.h>
#include <gnuradio/fadelab/wifi_synchronizer.h>
#include <gnuradio/fadelab/wifi_unframer.h>

#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "../access/carrier_sense.hpp"
#include "../access/contention.hpp"
#include "../blocks/numbers.hpp"
#include "../blocks/spectrum.hpp"
#include "../ofdm/demodulator.hpp"
#include "../ofdm/modulator.hpp"
#include "../wifi/mac.hpp"
#include "../wifi/synchronizer.hpp"

namespace py = pybind11;
namespace ofdm = gr::fadelab::ofdm;
namespace wifi = gr::fadelab::wifi;

namespace {

using Samples = py::array_t<ofdm::Sample, py::array::c_style | py::array::forcecast>;

Samples array_of(const std::vector<ofdm::Sample>& samples) {
    return Samples(static_cast<py::ssize_t>(samples.size()), samples.data());
}

py::array_t<std::int64_t> array_of(const std::vector<std::size_t>& places) {
    py::array_t<std::int64_t> array(static_cast<py::ssize_t>(places.size()));
    std::copy(places.begin(), places.end(), array.mutable_data());
    return array;
}

// Equalised payload symbols, which Python gets as an array.
struct Constellation {
    Samples symbols;
    std::string modulation;
};

// None before the first frame.
std::optional<Constellation> shown(const std::vector<ofdm::Sample>& symbols, const std::string& modulation) {
    return modulation.empty() ? std::nullopt : std::make_optional(Constellation{array_of(symbols), modulation});
}

// The fields of flowgraphs/phy.py's Received, in its order.
py::tuple fields_of(const ofdm::Report& report, double rate_sps) {
    return py::make_tuple(py::bytes(reinterpret_cast<const char*>(report.payload.data()), report.payload.size()),
                          report.crc_ok, report.sequence, report.sample, report.nsamples, report.snr_db, report.evm_db,
                          report.cfo / (2.0 * M_PI) * rate_sps, report.rssi_db, report.mode);
}

// Likewise.
py::tuple fields_of(const gr::fadelab::frame_box::frame& frame) {
    return py::make_tuple(py::bytes(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size()),
                          frame.crc_ok, frame.sequence, frame.sample, frame.nsamples, frame.snr_db, frame.evm_db,
                          frame.cfo_hz, frame.rssi_db, frame.mode);
}

// A modulator and what it works in.
struct Modulating {
    ofdm::Modulator modulator;
    std::vector<ofdm::Sample> burst;
};

void bind_format(py::module& module) {
    py::class_<ofdm::Format>(module, "OfdmFormat", "The frame's shape; for a mode, by name, its lengths.")
        .def(py::init(&gr::fadelab::format_of), py::arg("subcarriers"), py::arg("cyclic_prefix"), py::arg("taper"))
        .def_property_readonly("active", [](const ofdm::Format& format) { return array_of(format.active()); })
        .def_property_readonly("data", [](const ofdm::Format& format) { return array_of(format.data()); })
        .def_property_readonly("pilots", [](const ofdm::Format& format) { return array_of(format.pilots()); })
        .def_property_readonly("header_symbols", &ofdm::Format::header_symbols)
        .def(
            "frame_samples",
            [](const ofdm::Format& format, std::int64_t nbytes, const std::string& modulation, const std::string& fec) {
                // a negative length becomes one that is too long
                return format.frame_samples(static_cast<std::size_t>(nbytes), ofdm::modulation_named(modulation),
                                            ofdm::fec_named(fec).scheme());
            },
            py::arg("nbytes"), py::arg("modulation"), py::arg("fec"));
}

void bind_engine(py::module& module) {
    py::class_<Constellation>(module, "Constellation", "Payload symbols of one frame; ideal ones have mean power 1.")
        .def_readonly("symbols", &Constellation::symbols)
        .def_readonly("modulation", &Constellation::modulation);
    py::class_<Modulating>(module, "OfdmModulator", "Frames to bursts, without a flowgraph.")
        .def(py::init([](const ofdm::Format& format, const std::string& modulation, const std::string& fec, float rms,
                         int network) {
                 return Modulating{
                     ofdm::Modulator(format, ofdm::modulation_named(modulation), ofdm::fec_named(fec),
                                     gr::fadelab::checked_rms(rms), gr::fadelab::checked_network(network)),
                     {}};
             }),
             py::arg("format"), py::arg("modulation"), py::arg("fec"), py::arg("rms"), py::arg("network"))
        .def(
            "modulate",
            [](Modulating& modulating, const py::bytes& frame) {
                const auto octets = static_cast<std::string_view>(frame);
                {
                    const py::gil_scoped_release released;
                    modulating.modulator.modulate(reinterpret_cast<const std::uint8_t*>(octets.data()), octets.size(),
                                                  modulating.burst);
                }
                return array_of(modulating.burst);
            },
            py::arg("frame"));
    py::class_<ofdm::Demodulator>(module, "OfdmDemodulator", "Samples to frames, without a flowgraph.")
        .def(py::init([](const ofdm::Format& format, int network, int reach) {
                 return std::make_unique<ofdm::Demodulator>(format, gr::fadelab::checked_network(network),
                                                            gr::fadelab::checked_reach(reach, format));
             }),
             py::arg("format"), py::arg("network"), py::arg("reach") = 0)
        .def(
            "feed",
            [](ofdm::Demodulator& demodulator, const Samples& samples, double rate_sps) {
                std::vector<ofdm::Report> reports;
                {
                    const py::gil_scoped_release released;
                    demodulator.feed(samples.data(), static_cast<std::size_t>(samples.size()),
                                     [&](const ofdm::Report& report) { reports.push_back(report); });
                }
                py::list frames;
                for (const auto& report : reports) {
                    frames.append(fields_of(report, rate_sps));
                }
                return frames;
            },
            py::arg("samples"), py::arg("rate_sps"))
        .def_property_readonly("constellation", [](const ofdm::Demodulator& demodulator) {
            const auto newest = demodulator.constellation();
            return shown(newest.symbols, newest.modulation);
        });
}

// The methods of a block that measures its samples.
template <typename Block, typename... Options>
void bind_metered(py::class_<Block, Options...>& block) {
    block.def("take_peak", [](Block& metered) { return metered.take_peak(); })
        .def_property_readonly("newest", [](const Block& metered) { return array_of(metered.newest()); })
        .def(
            "spectrum_db",
            [](Block& metered, int bins) {
                std::vector<float> levels;
                {
                    const py::gil_scoped_release released;
                    levels = metered.spectrum_db(bins);
                }
                return py::array_t<float>(static_cast<py::ssize_t>(levels.size()), levels.data());
            },
            py::arg("bins"), "Return the power of the newest samples in each bin, in dB of full scale.")
        .def(
            "beginnings",
            [](const Block& metered, std::size_t known) {
                py::list beginnings;
                for (const auto& beginning : metered.beginnings(known)) {
                    beginnings.append(py::make_tuple(beginning.sample, beginning.at_s));
                }
                return beginnings;
            },
            py::arg("known") = 0, "Return sample and time (s) where the stream began, but for the `known` oldest.");
}

void bind_blocks(py::module& module) {
    using gr::fadelab::ofdm_receiver;
    using gr::fadelab::ofdm_transmitter;
    py::class_<ofdm_transmitter, gr::sync_block, gr::block, gr::basic_block, ofdm_transmitter::sptr>(
        module, "ofdm_transmitter", R"(Frames (message port "frames") to bursts, tagged "packet_len".)")
        .def(py::init(&ofdm_transmitter::make), py::arg("modulation") = "qpsk", py::arg("fec") = "none",
             py::arg("subcarriers") = 64, py::arg("cyclic_prefix") = 16, py::arg("taper") = 4, py::arg("rms") = 0.25F,
             py::arg("network") = 0);
    py::class_<ofdm_receiver, gr::sync_block, gr::block, gr::basic_block, ofdm_receiver::sptr> receiver(
        module, "ofdm_receiver", "Samples to frames (message port \"frames\").");
    receiver
        .def(py::init(&ofdm_receiver::make), py::arg("rate_sps"), py::arg("subcarriers") = 64,
             py::arg("cyclic_prefix") = 16, py::arg("taper") = 4, py::arg("network") = 0, py::arg("reach") = 0)
        .def_property_readonly("constellation", [](const ofdm_receiver& receiver) {
            const auto newest = receiver.constellation();
            return shown(newest.points, newest.modulation);
        });
    bind_metered(receiver);
}

void bind_ports(py::module& module) {
    using gr::fadelab::burst_guard;
    using gr::fadelab::frame_box;
    using gr::fadelab::idle_filler;
    using gr::fadelab::sample_meter;
    py::class_<burst_guard, gr::block, gr::basic_block, burst_guard::sptr>(
        module, "burst_guard", "Bursts in, the same with silence before and after each out.")
        .def(py::init(&burst_guard::make), py::arg("head"), py::arg("tail"));
    py::class_<idle_filler, gr::block, gr::basic_block, idle_filler::sptr>(
        module, "idle_filler", "Bursts in, a continuous stream out: silence between bursts.")
        .def(py::init(&idle_filler::make), py::arg("lot") = 1024);
    py::class_<frame_box, gr::block, gr::basic_block, frame_box::sptr>(
        module, "frame_box", "Frames into a flowgraph and out of it; `eventfd` is readable once one was received.")
        .def(py::init(&frame_box::make))
        .def(
            "send",
            [](frame_box& box, const py::bytes& frame, const std::string& mode) {
                const auto octets = static_cast<std::string_view>(frame);
                const py::gil_scoped_release released;
                box.send(reinterpret_cast<const std::uint8_t*>(octets.data()), octets.size(), mode);
            },
            py::arg("frame"), py::arg("mode") = "")
        .def("take",
             [](frame_box& box) {
                 py::list frames;
                 for (const auto& frame : box.take()) {
                     frames.append(fields_of(frame));
                 }
                 return frames;
             })
        .def_property_readonly("eventfd", &frame_box::eventfd)
        .def_property_readonly("late", &frame_box::late)
        .def_property_readonly("acknowledged", &frame_box::acknowledged)
        .def_property_readonly("departed", &frame_box::departed)
        .def("close", &frame_box::close);
    py::class_<sample_meter, gr::sync_block, gr::block, gr::basic_block, sample_meter::sptr> meter(
        module, "sample_meter", "The largest and the newest samples of a stream, and how often it began.");
    meter.def(py::init(&sample_meter::make), py::arg("lot") = 16384);
    bind_metered(meter);
    module.def(
        "spectrum_db",
        [](const Samples& samples, int bins) {
            const auto levels =
                gr::fadelab::Spectrum(bins).decibels(samples.data(), static_cast<std::size_t>(samples.size()));
            return py::array_t<float>(static_cast<py::ssize_t>(levels.size()), levels.data());
        },
        py::arg("samples"), py::arg("bins"), "Return the power of samples in each bin, in dB of full scale.");
}

void bind_access(py::module& module) {
    using gr::fadelab::channel_access;
    py::class_<channel_access, gr::block, gr::basic_block, channel_access::sptr>(
        module, "channel_access", "Listen before talk: bursts and received samples in, both out.")
        .def(py::init(&channel_access::make), py::arg("rate_sps"), py::arg("defer_us") = 100.0,
             py::arg("slot_us") = 900.0, py::arg("lead_us") = 800.0, py::arg("turnaround_us") = 20.0,
             py::arg("occupancy_us") = 13'000.0, py::arg("window") = 4, py::arg("yield_slots") = 4, py::arg("threshold_db") = 6.0,
             py::arg("seed") = 1)
        .def_property_readonly(
            "counts",
            [](const channel_access& access) {
                const auto counts = access.counts();
                return py::make_tuple(counts.bursts, counts.deferrals, counts.backoff_s, counts.airtime_s,
                                      counts.collisions_heard);
            },
            "Bursts, deferrals, idle carrier that bursts waited (s), airtime (s), collisions heard.")
        .def("forget_noise", &channel_access::forget_noise)
        .def("take_lag_s", &channel_access::take_lag_s)
        .def("take_spans", [](channel_access& access) {
            py::list spans;
            for (const auto& span : access.take_spans()) {
                spans.append(py::make_tuple(span.begin_s, span.end_s));
            }
            return spans;
        });

    // the machine alone, for its tests
    using gr::fadelab::access::Contention;
    py::class_<Contention>(module, "Contention", "When a station may send on a shared carrier; times in samples.")
        .def(py::init([](std::int64_t defer, std::int64_t slot, std::int64_t lead, std::int64_t turnaround, int window,
                         int yield, std::uint64_t seed) {
                 return Contention({defer, slot, lead, turnaround, gr::fadelab::checked_slots("window", window, 1),
                                    gr::fadelab::checked_slots("yield", yield, 0)},
                                   seed);
             }),
             py::arg("defer"), py::arg("slot"), py::arg("lead"), py::arg("turnaround"), py::arg("window"),
             py::arg("yield_slots"), py::arg("seed"))
        .def("hear", &Contention::hear, py::arg("until"), py::arg("busy"), py::arg("waiting"))
        .def("miss", &Contention::miss, py::arg("until"))
        .def("send", &Contention::send, py::arg("samples"))
        .def_property_readonly("free", &Contention::free)
        .def_property_readonly("deaf_from", &Contention::deaf_from)
        .def_property_readonly("deaf_until", &Contention::deaf_until)
        .def_property_readonly("counts", [](const Contention& contention) {
            const auto& counts = contention.counts();
            return py::make_tuple(counts.bursts, counts.deferrals, counts.backoff, counts.airtime,
                                  counts.collisions_heard);
        });
    using gr::fadelab::access::CarrierSense;
    py::class_<CarrierSense>(module, "CarrierSense", "Whether a carrier is in use, by windows of samples.")
        .def(py::init<std::size_t, double, std::size_t>(), py::arg("window"), py::arg("threshold_db"),
             py::arg("memory"))
        .def(
            "busy",
            [](CarrierSense& sense, const Samples& samples) {
                py::list busy;
                const std::size_t window = sense.window();
                for (std::size_t at = 0; at + window <= static_cast<std::size_t>(samples.size()); at += window) {
                    busy.append(sense.busy(samples.data() + at));
                }
                return busy;
            },
            py::arg("samples"), "Take whole windows; return for each whether the carrier was busy.")
        .def_property_readonly("noise", &CarrierSense::noise);
}

py::bytes bytes_of(const std::vector<std::uint8_t>& octets) {
    return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

const std::uint8_t* octets_of(const std::string_view& octets) {
    return reinterpret_cast<const std::uint8_t*>(octets.data());
}

void bind_wifi(py::module& module) {
    using gr::fadelab::wifi_framer;
    using gr::fadelab::wifi_synchronizer;
    using gr::fadelab::wifi_unframer;
    py::class_<wifi_framer, gr::block, gr::basic_block, wifi_framer::sptr>(
        module, "wifi_framer", R"(Link frames (message port "frames") into IEEE 802.11 PSDUs (port "psdus").)")
        .def(py::init(&wifi_framer::make), py::arg("encoding") = "qpsk-1/2", py::arg("network") = 0);
    py::class_<wifi_synchronizer, gr::block, gr::basic_block, wifi_synchronizer::sptr>(
        module, "wifi_synchronizer", "Samples into IEEE 802.11 symbols: vectors of 64 carriers.")
        .def(py::init(&wifi_synchronizer::make), py::arg("rate_sps"));
    py::class_<wifi_unframer, gr::block, gr::basic_block, wifi_unframer::sptr>(
        module, "wifi_unframer", R"(Decoded MPDUs (message port "mpdus") into received frames (port "frames").)")
        .def(py::init(&wifi_unframer::make), py::arg("synchronizer"), py::arg("network") = 0);

    py::class_<wifi::Preamble>(module, "WifiPreamble", "Where a frame begins and how it is heard.")
        .def_readonly("sample", &wifi::Preamble::sample)
        .def_readonly("cfo", &wifi::Preamble::cfo)
        .def_readonly("power", &wifi::Preamble::power)
        .def_readonly("snr", &wifi::Preamble::snr);
    py::class_<wifi::Synchronizer>(module, "WifiSynchronizer", "Samples to OFDM symbols, without a flowgraph.")
        .def(py::init<>())
        .def(
            "feed",
            [](wifi::Synchronizer& synchronizer, const Samples& samples) {
                wifi::Symbols found;
                synchronizer.feed(samples.data(), static_cast<std::size_t>(samples.size()), found);
                const auto symbols = static_cast<py::ssize_t>(found.count());
                const auto carriers = static_cast<py::ssize_t>(wifi::kCarriers);
                return py::make_tuple(array_of(found.carriers).reshape({symbols, carriers}), found.beginnings);
            },
            py::arg("samples"),
            "Return the symbols that are complete by now (carriers -32 to 31), and with which of them frames begin.")
        .def("gap", &wifi::Synchronizer::gap, "The next sample does not follow the last one.");

    module.attr("WIFI_MAX_FRAME_BYTES") = wifi::kMaxFrameBytes;
    py::dict encodings;
    for (const auto& encoding : wifi::kEncodings) {
        encodings[encoding.name] = encoding.data_bits;
    }
    module.attr("WIFI_ENCODINGS") = encodings;
    module.def(
        "wifi_frame_samples",
        [](std::size_t nbytes, const std::string& encoding) {
            const wifi::Encoding& used = wifi::encoding_named(encoding);
            return wifi::burst_samples(wifi::psdu_bytes(nbytes, used), used);
        },
        py::arg("nbytes"), py::arg("encoding"));
    module.def(
        "wifi_mac_frame",
        [](const py::bytes& frame, std::uint32_t sequence, int network, const std::string& encoding) {
            const auto octets = static_cast<std::string_view>(frame);
            return bytes_of(wifi::mac_frame(octets_of(octets), octets.size(), sequence,
                                            gr::fadelab::checked_network(network), wifi::encoding_named(encoding)));
        },
        py::arg("frame"), py::arg("sequence"), py::arg("network"), py::arg("encoding"));
    module.def(
        "wifi_link_frame",
        [](const py::bytes& mpdu, int network) -> py::object {
            const auto octets = static_cast<std::string_view>(mpdu);
            const auto found = wifi::link_frame(octets_of(octets), octets.size(), gr::fadelab::checked_network(network));
            return found ? py::make_tuple(found->sequence, bytes_of(found->payload)) : py::object(py::none());
        },
        py::arg("mpdu"), py::arg("network"));
}

}  // namespace

PYBIND11_MODULE(fadelab_python, module) {
    // the types that the blocks derive from
    py::module::import("gnuradio.gr");
    module.attr("MAX_FRAME_BYTES") = ofdm::kMaxFrameBytes;
    py::list modulations;
    for (const auto& modulation : ofdm::kModulations) {
        modulations.append(modulation.name);
    }
    py::list codes;
    for (const auto& code : ofdm::kFecs) {
        codes.append(code.name);
    }
    module.attr("MODULATIONS") = py::tuple(modulations);
    module.attr("FECS") = py::tuple(codes);
    module.def("liquid_version", [] { return std::string(liquid_libversion()); });
    bind_format(module);
    bind_engine(module);
    bind_blocks(module);
    bind_ports(module);
    bind_access(module);
    bind_wifi(module);
}

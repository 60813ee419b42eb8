// Virtual USRPs at work, for the sanitizers: two devices in this process with bursts, timed commands and a changing air
// on either clock, and a third one in a process that is killed again and again. Exit status 0: what was sent was heard,
// every kind of message came, and nobody waited for the dead.

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uhd/stream.hpp>
#include <uhd/usrp/multi_usrp.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "air.hpp"

extern char** environ;

namespace {

using uhd::async_metadata_t;
using uhd::stream_cmd_t;
using Usrp = uhd::usrp::multi_usrp::sptr;
using Samples = std::vector<std::complex<float>>;
using namespace std::chrono_literals;

constexpr double kRate_sps = 500e3;
constexpr double kFreq_hz = 2.4e9;
constexpr double kGain_db = 40.0;
// The default path takes 60 dB: amplitude 1 arrives as 0.3.
constexpr float kHeard = 0.1F;
constexpr auto kRealTime = 2s;
// A busy machine's messages come later.
constexpr auto kPatience = 60s;
// More than a channel has segments, so that their ring is written twice.
constexpr int kBursts = 4500;
constexpr std::size_t kBurstSamples = 40;
constexpr double kBurstDistance_s = 100e-6;
constexpr double kStart_s = 20e-3;
// Receivers run ahead by up to a millisecond.
constexpr std::size_t kLead = 1000;
constexpr int kKills = 3;

void check(bool right, const std::string& what) {
    if (right) return;
    static_cast<void>(std::fprintf(stderr, "devices: %s\n", what.c_str()));
    std::_Exit(1);
}

Usrp device(const std::string& air, const std::string& serial, bool lockstep) {
    const std::string clock = lockstep ? "lockstep" : "realtime";
    Usrp usrp =
        uhd::usrp::multi_usrp::make("type=vusrp,air=" + air + ",serial=" + serial + ",air_clock=" + clock);
    for (std::size_t channel = 0; channel < usrp->get_rx_num_channels(); ++channel) {
        usrp->set_rx_rate(kRate_sps, channel);
        usrp->set_tx_rate(kRate_sps, channel);
        usrp->set_rx_freq(kFreq_hz, channel);
        usrp->set_tx_freq(kFreq_hz, channel);
        usrp->set_rx_gain(kGain_db, channel);
        usrp->set_tx_gain(kGain_db, channel);
    }
    return usrp;
}

uhd::stream_args_t arguments(std::vector<std::size_t> channels) {
    uhd::stream_args_t args("fc32", "sc16");
    args.channels = std::move(channels);
    return args;
}

float loudest(const Samples& samples, std::size_t count) {
    float peak = 0.0F;
    for (std::size_t i = 0; i < count; ++i) peak = std::max(peak, std::abs(samples[i]));
    return peak;
}

// -- real time ---------------------------------------------------------------------------------------------------

// Bursts without a time, with one, with one that is past, and without an end.
void send_bursts(const Usrp& usrp, const uhd::tx_streamer::sptr& stream, unsigned seed, const std::atomic<bool>& done) {
    std::mt19937 random(seed);
    const Samples samples(5000, {0.5F, -0.5F});
    const std::vector<const void*> buffers(stream->get_num_channels(), samples.data());
    for (int i = 0; !done; ++i) {
        uhd::tx_metadata_t metadata;
        metadata.start_of_burst = true;
        metadata.end_of_burst = i % 4 != 3;
        metadata.has_time_spec = i % 4 == 1 || i % 4 == 2;
        if (metadata.has_time_spec) metadata.time_spec = usrp->get_time_now() + (i % 4 == 1 ? 20e-3 : -20e-3);
        stream->send(buffers, 1 + random() % samples.size(), metadata, 1.0);
        // behind the timed burst, 20 ms ahead, it lasts 10 ms, then runs dry
        if (i % 4 == 3) std::this_thread::sleep_for(60ms);
    }
}

// What a transmitter was told.
struct Told {
    std::atomic<int> acknowledged{0};
    std::atomic<int> late{0};
    std::atomic<int> dry{0};

    bool all() const { return acknowledged > 0 && late > 0 && dry > 0; }
};

void listen(const uhd::tx_streamer::sptr& stream, Told& told, const std::atomic<bool>& done) {
    while (!done) {
        async_metadata_t message;
        if (!stream->recv_async_msg(message, 0.01)) continue;
        told.acknowledged += message.event_code == async_metadata_t::EVENT_CODE_BURST_ACK ? 1 : 0;
        told.late += message.event_code == async_metadata_t::EVENT_CODE_TIME_ERROR ? 1 : 0;
        told.dry += (message.event_code & (async_metadata_t::EVENT_CODE_UNDERFLOW |
                                           async_metadata_t::EVENT_CODE_UNDERFLOW_IN_PACKET)) != 0
                        ? 1
                        : 0;
    }
}

// Receives continuously, now and then a number of samples at a time; returns the largest one.
float receive(const Usrp& usrp, const uhd::rx_streamer::sptr& stream, unsigned seed, const std::atomic<bool>& done) {
    std::mt19937 random(seed);
    std::vector<Samples> samples(stream->get_num_channels(), Samples(20'000));
    std::vector<void*> buffers;
    buffers.reserve(samples.size());
    for (auto& one : samples) buffers.push_back(one.data());
    float peak = 0.0F;
    const auto take = [&] {
        uhd::rx_metadata_t metadata;
        const std::size_t count = stream->recv(buffers, 1 + random() % samples[0].size(), metadata, 0.1);
        for (const auto& one : samples) peak = std::max(peak, loudest(one, count));
        return !metadata.end_of_burst && metadata.error_code != uhd::rx_metadata_t::ERROR_CODE_TIMEOUT;
    };
    while (!done) {
        stream_cmd_t some(stream_cmd_t::STREAM_MODE_NUM_SAMPS_AND_DONE);
        some.num_samps = 1 + random() % 10'000;
        some.stream_now = false;
        some.time_spec = usrp->get_time_now() + 5e-3;
        stream->issue_stream_cmd(some);
        while (take()) {
        }
        stream_cmd_t command(stream_cmd_t::STREAM_MODE_START_CONTINUOUS);
        command.stream_now = false;
        command.time_spec = usrp->get_time_now() + 5e-3;
        stream->issue_stream_cmd(command);
        for (int i = 0; i < 20 && !done; ++i) take();
        stream->issue_stream_cmd(stream_cmd_t(stream_cmd_t::STREAM_MODE_STOP_CONTINUOUS));
        while (take()) {
        }
    }
    return peak;
}

// Changes frequencies and gains, now and at a time.
void tune(const Usrp& usrp, const std::atomic<bool>& done) {
    for (int i = 0; !done; ++i) {
        if (i % 2 == 0) usrp->set_command_time(usrp->get_time_now() + 3e-3);
        usrp->set_rx_gain(kGain_db + i % 3);
        usrp->set_tx_gain(kGain_db - i % 3);
        usrp->set_rx_freq(kFreq_hz + i % 5);
        usrp->set_tx_freq(kFreq_hz - i % 5);
        usrp->clear_command_time();
        std::this_thread::sleep_for(15ms);
    }
}

// Changes what is between the devices, and looks at it.
void change(const std::string& name, const std::atomic<bool>& done) {
    auto air = fadelab::Air::open(name);
    check(air.has_value(), "the air has gone");
    for (int i = 0; !done; ++i) {
        fadelab::medium::LinkOptions link;
        link.gain_db = -60.0 - i % 2;
        link.delay_ns = 1e3 * (i % 4);
        if (i % 3 == 0) {
            link.n_taps = 2;
            link.taps[1].delay_ns = 500.0;
            link.taps[1].kind = fadelab::medium::kRayleigh;
            link.taps[1].doppler_hz = 10.0;
        }
        air->set_link(i % 2 == 0 ? "V1" : "*", i % 5 == 0 ? "V2:1" : "*", link);
        air->set_noise_dbm_hz("V2", -160.0 - i % 8);
        air->set_clock_offset_ppm("V1", i % 3 - 1.0);
        static_cast<void>(air->owner("V1"));
        air->reap();
        std::this_thread::sleep_for(10ms);
    }
}

// A third device comes and goes.
void visit(const std::string& air, const std::atomic<bool>& done) {
    while (!done) {
        const Usrp usrp = device(air, "V3", false);
        const auto stream = usrp->get_tx_stream(arguments({1}));
        const Samples samples(1000);
        uhd::tx_metadata_t metadata;
        metadata.end_of_burst = true;
        stream->send(samples.data(), samples.size(), metadata);
        std::this_thread::sleep_for(5ms);
    }
}

void in_real_time(const std::string& air) {
    const Usrp one = device(air, "V1", false);
    const Usrp two = device(air, "V2", false);
    const auto first_out = one->get_tx_stream(arguments({0, 1}));
    const auto second_out = two->get_tx_stream(arguments({0}));
    const auto first_in = one->get_rx_stream(arguments({0}));
    const auto second_in = two->get_rx_stream(arguments({0, 1}));
    std::atomic<bool> done{false};
    std::array<Told, 2> told;
    std::array<float, 2> peaks{};
    std::vector<std::thread> threads;
    threads.emplace_back([&] { send_bursts(one, first_out, 1, done); });
    threads.emplace_back([&] { send_bursts(two, second_out, 2, done); });
    threads.emplace_back([&] { listen(first_out, told[0], done); });
    threads.emplace_back([&] { listen(second_out, told[1], done); });
    threads.emplace_back([&] { peaks[0] = receive(one, first_in, 3, done); });
    threads.emplace_back([&] { peaks[1] = receive(two, second_in, 4, done); });
    threads.emplace_back([&] { tune(one, done); });
    threads.emplace_back([&] { tune(two, done); });
    threads.emplace_back([&] { change(air, done); });
    threads.emplace_back([&] { visit(air, done); });
    std::this_thread::sleep_for(kRealTime);
    const auto patience = std::chrono::steady_clock::now() + kPatience;
    while (!(told[0].all() && told[1].all())) {
        check(std::chrono::steady_clock::now() < patience, "a kind of message did not come");
        std::this_thread::sleep_for(10ms);
    }
    done = true;
    for (auto& thread : threads) thread.join();
    check(std::min(peaks[0], peaks[1]) > kHeard, "bursts in real time were not heard");
}

// -- lockstep ----------------------------------------------------------------------------------------------------

void in_lockstep(const std::string& air) {
    const Usrp one = device(air, "V1", true);
    const Usrp two = device(air, "V2", true);
    const auto out = one->get_tx_stream(arguments({0}));
    const auto in = two->get_rx_stream(arguments({0}));
    // until when all bursts have been sent, in samples: time goes on between bursts, whether the next was sent or not
    std::atomic<std::size_t> sent_until{0};
    std::thread sender([&] {
        const Samples samples(kBurstSamples, {0.5F, -0.5F});
        for (int i = 0; i < kBursts; ++i) {
            uhd::tx_metadata_t metadata;
            metadata.start_of_burst = metadata.end_of_burst = metadata.has_time_spec = true;
            metadata.time_spec = uhd::time_spec_t(kStart_s + i * kBurstDistance_s);
            check(out->send(samples.data(), samples.size(), metadata, 10.0) == samples.size(), "a burst was not sent");
            sent_until = static_cast<std::size_t>((i * kBurstDistance_s + kStart_s) * kRate_sps);
        }
        sent_until = SIZE_MAX;
    });
    stream_cmd_t command(stream_cmd_t::STREAM_MODE_NUM_SAMPS_AND_DONE);
    command.num_samps = static_cast<std::uint64_t>((2 * kStart_s + kBursts * kBurstDistance_s) * kRate_sps);
    command.stream_now = false;
    command.time_spec = uhd::time_spec_t(0.0);
    in->issue_stream_cmd(command);
    Samples samples(5000);
    std::size_t heard = 0;
    std::mt19937 random(5);
    for (std::size_t received = 0; received < command.num_samps;) {
        uhd::rx_metadata_t metadata;
        const std::size_t wanted = 1 + random() % samples.size();
        while (sent_until < received + wanted + kLead) std::this_thread::yield();
        const std::size_t count = in->recv(samples.data(), wanted, metadata, 10.0);
        check(metadata.error_code == uhd::rx_metadata_t::ERROR_CODE_NONE, "receiving in lockstep: " + metadata.strerror());
        for (std::size_t i = 0; i < count; ++i) heard += std::abs(samples[i]) > kHeard ? 1 : 0;
        received += count;
    }
    sender.join();
    check(heard == kBursts * kBurstSamples, "of the bursts in lockstep " + std::to_string(heard) + " samples were heard");
}

// -- a peer that is killed -----------------------------------------------------------------------------------------

// Sends and receives until it is killed.
[[noreturn]] void be_killed(const std::string& air, bool lockstep) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const Usrp usrp = device(air, "V2", lockstep);
    const auto out = usrp->get_tx_stream(arguments({0, 1}));
    const auto in = usrp->get_rx_stream(arguments({0}));
    in->issue_stream_cmd(stream_cmd_t(stream_cmd_t::STREAM_MODE_START_CONTINUOUS));
    std::thread sender([&] {
        const Samples samples(1000, {0.5F, 0.5F});
        for (;;) out->send(std::vector<const void*>(2, samples.data()), samples.size(), uhd::tx_metadata_t(), 1.0);
    });
    Samples samples(700);
    for (bool told = false;; told = true) {
        uhd::rx_metadata_t metadata;
        in->recv(samples.data(), samples.size(), metadata, 1.0);
        if (!told) check(write(STDOUT_FILENO, "r", 1) == 1, "nobody waits for the peer");
    }
}

class Peer {
public:
    Peer(const std::string& air, bool lockstep) {
        std::array<int, 2> ends{};
        check(pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe");
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        std::vector<std::string> words{"devices", "peer", air, lockstep ? "lockstep" : "realtime"};
        std::vector<char*> argv;
        argv.reserve(words.size() + 1);
        for (auto& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        check(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ) == 0, "no peer");
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        ready_ = ends[0];
    }
    void kill_in_midstream(std::chrono::milliseconds after) {
        char ready = 0;
        check(read(ready_, &ready, 1) == 1, "the peer ended by itself");
        std::this_thread::sleep_for(after);
        ::kill(pid_, SIGKILL);
        int status = 0;
        waitpid(pid_, &status, 0);
        check(WIFSIGNALED(status), "the peer ended by itself");
        close(ready_);
    }

private:
    pid_t pid_ = 0;
    int ready_ = -1;
};

void beside_killed_peers(const std::string& air, bool lockstep) {
    const Usrp one = device(air, "V1", lockstep);
    const auto in = one->get_rx_stream(arguments({0}));
    std::atomic<bool> done{false};
    std::atomic<std::size_t> received{0};
    in->issue_stream_cmd(stream_cmd_t(stream_cmd_t::STREAM_MODE_START_CONTINUOUS));
    std::thread receiver([&] {
        Samples samples(3000);
        while (!done) {
            uhd::rx_metadata_t metadata;
            received += in->recv(samples.data(), samples.size(), metadata, 0.1);
        }
    });
    for (int i = 0; i < kKills; ++i) {
        Peer peer(air, lockstep);
        peer.kill_in_midstream(std::chrono::milliseconds(7 * i));
        // the dead one's serial number is free, and time goes on without it
        { const Usrp heir = device(air, "V2", lockstep); }
        const std::size_t before = received;
        for (int tries = 0; received < before + 3000; ++tries) {
            check(tries < 3000, "receiving waits for a dead device");
            std::this_thread::sleep_for(10ms);
        }
    }
    done = true;
    receiver.join();
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 3 && words[0] == "peer") be_killed(words[1], words[2] == "lockstep");
    const std::string name = "sanitized-" + std::to_string(getpid());
    for (const bool lockstep : {false, true}) {
        const std::string air = name + (lockstep ? "-lockstep" : "");
        (lockstep ? in_lockstep : in_real_time)(air);
        check(!fadelab::Air::open(air), "an air outlived its devices");
        beside_killed_peers(air + "-killed", lockstep);
        check(!fadelab::Air::open(air + "-killed"), "an air outlived its devices");
    }
    return 0;
}

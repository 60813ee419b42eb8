// What shared memory promises to other processes: who has left writes nothing more into its slot, the lock hands on
// priority, and a sender that is preempted for longer than receivers wait is told so. Exit status 0: all held.

#include <unistd.h>

#include <uhd/stream.hpp>
#include <uhd/usrp/multi_usrp.hpp>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "air.hpp"

namespace {

constexpr double kRate_sps = 1e6;
constexpr std::size_t kBurst = 500;
constexpr float kHeard = 0.1F;
constexpr int kLooks = 16;  // readings of the clock in one send(), at most
constexpr long kPreempted_ns = 5'000'000;

// The reading of the clock in this thread behind which it is preempted; 0: none.
thread_local int preempted_behind = 0;

void check(bool right, const std::string& what) {
    if (right) return;
    static_cast<void>(std::fprintf(stderr, "air: %s\n", what.c_str()));
    std::_Exit(1);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names
extern "C" {

int __real_clock_gettime(clockid_t clock, timespec* now);

int __wrap_clock_gettime(clockid_t clock, timespec* now) {
    const int result = __real_clock_gettime(clock, now);
    if (preempted_behind > 0 && --preempted_behind == 0) {
        const timespec pause{0, kPreempted_ns};
        nanosleep(&pause, nullptr);
    }
    return result;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

namespace {

void who_has_left_writes_nothing(const std::string& name) {
    const auto keeper = fadelab::Air::open_or_create(name, {}, fadelab::Keep::kWhileCallerLives);
    auto leaving = fadelab::Air::join(name, {}, "V1");
    auto other = fadelab::Air::open(name);
    check(other.has_value(), "the air has gone");
    const std::size_t slot = leaving.slot_index();
    leaving.reserve_samples(slot, 0);
    leaving.samples(slot, 0)[7] = 1.0F;
    check(other->samples(slot, 0)[7] == fadelab::Sample(1.0F), "a sample did not arrive");
    leaving.leave();
    const auto heir = fadelab::Air::join(name, {}, "V1");
    check(heir.slot_index() == slot, "the heir has another slot");
    leaving.samples(slot, 0)[7] = 2.0F;
    leaving.slot().tx[0].written = 12345;
    leaving.slot().rx[0].next_ns = 6;
    check(other->samples(slot, 0)[7] == fadelab::Sample(1.0F), "who has left wrote samples");
    check(other->header().slots[slot].tx[0].written == 0, "who has left wrote into its slot");
    check(other->header().slots[slot].rx[0].next_ns == fadelab::kNever, "who has left wrote into its slot");
    check(other->owner("V1").is_self(), "the heir has lost its slot");
}

void the_lock_hands_on_priority(const std::string& name) {
    auto air = fadelab::Air::open_or_create(name, {}, fadelab::Keep::kWhileCallerLives);
    // glibc's bit of PTHREAD_PRIO_INHERIT; POSIX cannot ask a mutex for its protocol
    check((air.header().mutex.__data.__kind & 0x20) != 0, "the air's lock does not inherit priority");
}

// Preempts the sender behind each of its looks at the clock: what was not heard was told.
void a_preempted_sender_is_told(const std::string& name) {
    const auto usrp = uhd::usrp::multi_usrp::make("type=vusrp,air=" + name + ",serial=V1");
    usrp->set_rx_rate(kRate_sps);
    usrp->set_tx_rate(kRate_sps);
    usrp->set_rx_gain(50.0);
    usrp->set_tx_gain(50.0);
    uhd::stream_args_t args("fc32", "sc16");
    args.channels = {0};
    const auto in = usrp->get_rx_stream(args);
    const auto out = usrp->get_tx_stream(args);
    std::atomic<bool> done{false};
    std::atomic<std::size_t> heard{0};
    std::thread receiver([&] {
        in->issue_stream_cmd(uhd::stream_cmd_t(uhd::stream_cmd_t::STREAM_MODE_START_CONTINUOUS));
        std::vector<std::complex<float>> samples(200);
        while (!done) {
            uhd::rx_metadata_t metadata;
            const std::size_t count = in->recv(samples.data(), samples.size(), metadata, 1.0);
            for (std::size_t i = 0; i < count; ++i) heard += std::abs(samples[i]) > kHeard ? 1 : 0;
        }
    });
    const std::vector<std::complex<float>> samples(kBurst, {0.5F, -0.5F});
    bool told_any = false;
    for (int look = 1; look <= kLooks; ++look) {
        heard = 0;
        uhd::tx_metadata_t metadata;
        metadata.start_of_burst = metadata.end_of_burst = true;
        preempted_behind = look;
        out->send(samples.data(), samples.size(), metadata, 1.0);
        preempted_behind = 0;
        bool told = false;
        bool over = false;
        while (!over) {
            uhd::async_metadata_t message{};
            check(out->recv_async_msg(message, 10.0), "a burst has no end");
            over = message.event_code == uhd::async_metadata_t::EVENT_CODE_BURST_ACK;
            told = told || !over;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        check(heard == kBurst || told, "preempted behind look " + std::to_string(look) + ", " +
                                           std::to_string(heard) + " samples of a burst were heard and nothing was told");
        told_any = told_any || told;
    }
    done = true;
    receiver.join();
    check(told_any, "no look at the clock lies between the check and what is published");
}

}  // namespace

int main() {
    const std::string name = "air-test-" + std::to_string(getpid());
    who_has_left_writes_nothing(name + "-left");
    the_lock_hands_on_priority(name + "-lock");
    a_preempted_sender_is_told(name + "-late");
    return 0;
}

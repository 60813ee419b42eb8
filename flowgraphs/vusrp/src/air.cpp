#include "air.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace fadelab {
namespace {

const std::string kFolder = "/dev/shm";
constexpr std::size_t kRingBytes = kRingSamples * sizeof(Sample);
constexpr std::size_t kHeaderBytes = (sizeof(Header) + kPage - 1) / kPage * kPage;
constexpr std::size_t kBytes = kHeaderBytes + kDevices * kChannels * kRingBytes;
constexpr std::int64_t kLookForDead_ns = 100'000'000;
constexpr std::int64_t kPatience_ns = 30 * kSecond_ns;
constexpr std::int64_t kPatienceWhileIdle_ns = 2 * kSecond_ns;

// Whether another process that can be looked at has a file mapped.
bool mapped_by_others(const std::string& path) {
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
        const std::string pid = process.path().filename();
        if (pid.find_first_not_of("0123456789") != std::string::npos || pid == std::to_string(getpid())) continue;
        std::ifstream maps(process.path() / "maps");
        for (std::string line; std::getline(maps, line);) {
            if (line.size() >= path.size() && line.compare(line.size() - path.size(), path.size(), path) == 0) return true;
        }
    }
    return false;
}

std::string path_of(const std::string& name) { return kFolder + "/fadelab-air-" + name; }

std::string reason(int error) { return std::generic_category().message(error); }

void make_mutex(pthread_mutex_t& mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void check_options(const std::string& name, const Header& header, const AirOptions& options) {
    const auto disagree = [&](const std::string& has, const std::string& asked) {
        throw AirError("air '" + name + "' has " + has + ", not " + asked + ": leave that out, or take another air");
    };
    if (options.lockstep && *options.lockstep != (header.lockstep != 0)) {
        disagree(*options.lockstep ? "clock realtime" : "clock lockstep", *options.lockstep ? "lockstep" : "realtime");
    }
    if (options.seed && *options.seed != header.seed) {
        disagree("seed=" + std::to_string(header.seed), "seed=" + std::to_string(*options.seed));
    }
    if (options.wait_streams && *options.wait_streams != header.wait_streams) {
        disagree("wait_streams=" + std::to_string(header.wait_streams),
                 "wait_streams=" + std::to_string(*options.wait_streams));
    }
}

// Takes back what a channel would still have played.
void cut(TxChannel& channel, std::int64_t now_ns) {
    channel.open_until_ns = kNever;
    const std::uint64_t end = channel.segments;
    const std::uint64_t oldest = end > kSegments ? end - kSegments : 0;
    for (std::uint64_t i = end; i-- > oldest;) {
        Segment& segment = channel.ring[i % kSegments];
        const std::int64_t played = Grid{segment.rate_sps, segment.ppm}.first_tick_at(now_ns) - segment.start_tick;
        if (played >= segment.length) break;
        segment.length = std::max<std::int64_t>(played, 0);
    }
}

void cut(Tunings& tunings, std::int64_t now_ns) {
    const std::uint64_t end = tunings.count;
    const std::uint64_t oldest = end > kTunings ? end - kTunings : 0;
    for (std::uint64_t i = end; i-- > oldest;) {
        Tuning& tuning = tunings.ring[i % kTunings];
        if (tuning.at_ns <= now_ns) break;
        tuning.at_ns = now_ns;
    }
}

}  // namespace

Air::Lock::Lock(Air& air) : header_(*air.header_) {
    // A dead owner's work needs no repair: entries count only once they are whole.
    if (pthread_mutex_lock(&header_.mutex) == EOWNERDEAD) pthread_mutex_consistent(&header_.mutex);
}

Air::Lock::~Lock() { pthread_mutex_unlock(&header_.mutex); }

Air Air::open_or_create(const std::string& name, const AirOptions& options, Keep keep) {
    return find(name, options, keep, nullptr);
}

Air Air::join(const std::string& name, const AirOptions& options, const std::string& serial) {
    check_name("a serial number", serial);
    return find(name, options, Keep::kWhileUsed, &serial);
}

Air Air::find(const std::string& name, const AirOptions& options, Keep keep, const std::string* serial) {
    for (;;) {
        if (auto air = open(name)) {
            const Lock lock(*air);
            air->reap_locked();
            if (air->header_->removed || air->unused_locked()) {
                air->remove_locked();
                continue;
            }
            check_options(name, *air->header_, options);
            air->keep_locked(keep);
            if (serial != nullptr) air->claim_locked(*serial);
            return std::move(*air);
        }
        if (auto air = create(name, options, keep, serial)) return std::move(*air);
    }
}

std::optional<Air> Air::open(const std::string& name) {
    check_name("the name of an air", name);
    const int file = ::open(path_of(name).c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) {
        if (errno == ENOENT) return std::nullopt;
        throw AirError("air '" + name + "' cannot be opened: " + reason(errno));
    }
    Mapping mapping(name, file);
    if (!mapping.whole()) {
        throw AirError("air '" + name + "' was made by another version of this program: remove " + path_of(name));
    }
    return Air(name, std::move(mapping));
}

std::optional<Air> Air::create(const std::string& name, const AirOptions& options, Keep keep,
                               const std::string* serial) {
    const int file = ::open(kFolder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, kBytes) != 0) {
        throw AirError("air '" + name + "' cannot be made in " + kFolder + ": " + reason(errno));
    }
    Air air(name, Mapping(name, file));
    Header& header = *air.header_;  // zeros, which are an empty one but for what follows
    header.magic = kMagic;
    header.version = kVersion;
    header.lockstep = options.lockstep.value_or(false);
    header.seed = options.seed.value_or(1);
    header.wait_streams = options.wait_streams.value_or(0);
    header.lead_ns = kLead_ns;
    header.epoch_ns = monotonic_ns();
    air.keep_locked(keep);
    make_mutex(header.mutex);
    for (Slot& slot : header.slots) {
        for (TxChannel& channel : slot.tx) channel.open_until_ns = kNever;
        for (RxChannel& channel : slot.rx) channel.next_ns = kNever;
    }
    if (serial != nullptr) air.claim_locked(*serial);
    const std::string unnamed = "/proc/self/fd/" + std::to_string(file);
    if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path_of(name).c_str(), AT_SYMLINK_FOLLOW) == 0) return air;
    if (errno == EEXIST) return std::nullopt;
    throw AirError("air '" + name + "' cannot be made: " + reason(errno));
}

bool Air::remove(const std::string& name) {
    check_name("the name of an air", name);
    const int file = ::open(path_of(name).c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    Mapping mapping(name, file);
    if (!mapping.whole()) return unlink(path_of(name).c_str()) == 0;
    Air air(name, std::move(mapping));
    const Lock lock(air);
    air.remove_locked();
    return true;
}

bool Air::abandoned(const std::string& name) {
    check_name("the name of an air", name);
    const int file = ::open(path_of(name).c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    const Mapping mapping(name, file);
    // Another version's layout says nothing here, but its users have the file mapped, as the maker of a new one has.
    if (!mapping.whole()) return !mapped_by_others(path_of(name));
    // Looked at without the lock, which would be to join; whoever joins now finds it unused, and makes another.
    const auto& header = *static_cast<const Header*>(mapping.memory());
    if (header.kept && (header.keeper.pid == 0 || header.keeper.alive())) return false;
    return std::none_of(std::begin(header.slots), std::end(header.slots),
                        [](const Slot& slot) { return slot.owner.pid != 0 && slot.owner.alive(); });
}

Air::Mapping::Mapping(const std::string& name, int file) : file_(file) {
    struct stat status;
    fstat(file, &status);
    inode_ = status.st_ino;
    bytes_ = static_cast<std::size_t>(status.st_size);
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory_ == MAP_FAILED) {
        close(file);
        throw AirError("air '" + name + "' cannot be mapped: " + reason(errno));
    }
}

Air::Mapping::Mapping(Mapping&& other) noexcept
    : file_(std::exchange(other.file_, -1)), inode_(other.inode_), bytes_(other.bytes_), memory_(other.memory_) {}

Air::Mapping::~Mapping() {
    if (file_ < 0) return;
    munmap(memory_, bytes_);
    close(file_);
}

void Air::Mapping::make_private(std::byte* begin, std::size_t bytes) const {
    const off_t offset = begin - static_cast<std::byte*>(memory_);
    static_cast<void>(mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file_, offset));
}

bool Air::Mapping::whole() const {
    const auto* header = static_cast<const Header*>(memory_);
    return bytes_ == kBytes && header->magic == kMagic && header->version == kVersion;
}

Air::Air(std::string name, Mapping mapping)
    : name_(std::move(name)), mapping_(std::move(mapping)), header_(static_cast<Header*>(mapping_.memory())) {}

Air::Air(Air&& other) noexcept
    : name_(std::move(other.name_)),
      mapping_(std::move(other.mapping_)),
      header_(std::exchange(other.header_, nullptr)),
      slot_(other.slot_),
      claims_(other.claims_),
      keeps_(other.keeps_) {}

Air::~Air() {
    if (header_ == nullptr) return;
    const Lock lock(*this);
    leave_locked();
}

void Air::leave() {
    const Lock lock(*this);
    const bool claimed = claims_;
    leave_locked();
    if (claimed) {
        // Another thread may be in the midst of sending: what it still writes must not reach the slot's next owner.
        mapping_.make_private(reinterpret_cast<std::byte*>(&slot()), sizeof(Slot));
        for (std::size_t channel = 0; channel < kChannels; ++channel) {
            mapping_.make_private(reinterpret_cast<std::byte*>(samples(slot_, channel)), kRingBytes);
        }
    }
}

void Air::leave_locked() {
    if (claims_) free_locked(slot_);
    if (keeps_) header_->kept = 0;
    claims_ = keeps_ = false;
    reap_locked();
    if (unused_locked()) remove_locked();
}

void Air::sleep_until(std::int64_t ns) {
    for (;;) {
        const std::uint32_t seen = header_->events;
        if (now_ns() >= ns) return;
        wait(header_->events, seen, look_again_ns(ns));
    }
}

std::int64_t Air::look_again_ns(std::int64_t ns) const {
    if (lockstep()) return monotonic_ns() + kLookForDead_ns;
    return ns == kNever ? kNever : header_->epoch_ns + ns;
}

std::int64_t Air::settled_ns() const {
    if (!lockstep()) return now_ns() - kPublishing_ns;
    if (header_->bursts < header_->wait_streams) return 0;
    // Time first: a burst that begins later begins behind what is returned.
    std::int64_t settled = now_ns() + header_->lead_ns;
    for (const Slot& slot : header_->slots) {
        for (const TxChannel& channel : slot.tx) settled = std::min(settled, channel.open_until_ns.load());
    }
    return settled;
}

bool Air::begin_burst(std::size_t channel, std::int64_t start_ns) {
    if (!lockstep()) return start_ns >= now_ns();
    const Lock lock(*this);
    if (start_ns < earliest_ns()) return false;
    slot().tx[channel].open_until_ns = start_ns;
    if (header_->bursts < header_->wait_streams) ++header_->bursts;
    advance_locked();
    return true;
}

void Air::set_transmitting(std::size_t channel, std::int64_t until_ns) {
    if (!lockstep()) return;
    const Lock lock(*this);
    slot().tx[channel].open_until_ns = until_ns;
    advance_locked();
}

void Air::set_receiving(std::size_t channel, std::int64_t next_ns) {
    if (!lockstep()) return;
    const Lock lock(*this);
    slot().rx[channel].next_ns = next_ns;
    if (next_ns < kIdle) header_->received = 1;
    advance_locked();
}

void Air::lead_at_least(std::int64_t ns) {
    if (!lockstep()) return;
    const Lock lock(*this);
    header_->lead_ns = std::max(header_->lead_ns.load(), ns);
}

bool Air::receiving() const {
    bool active = false;
    for (const Slot& slot : header_->slots) {
        for (const RxChannel& channel : slot.rx) active = active || channel.next_ns < kIdle;
    }
    return active || !header_->received;
}

std::int64_t Patience::ends_ns() {
    if (!air_.lockstep()) return begun_ns_;
    const std::int64_t most_ns = begun_ns_ + kPatience_ns;
    if (!air_.receiving()) return std::min(most_ns, receiving_ns_ + kPatienceWhileIdle_ns);
    receiving_ns_ = monotonic_ns();
    return most_ns;
}

Process Air::owner(const std::string& serial) {
    const Lock lock(*this);
    for (const Slot& slot : header_->slots) {
        if (serial == slot.serial && slot.owner.alive()) return slot.owner;
    }
    return {};
}

Air::Occupant Air::occupant(std::size_t slot) {
    const Lock lock(*this);
    return {header_->slots[slot].owner, header_->slots[slot].serial};
}

void Air::reap() {
    const Lock lock(*this);
    reap_locked();
}

void Air::keep_locked(Keep keep) {
    if (keep == Keep::kWhileUsed) return;
    keeps_ = keep == Keep::kWhileCallerLives;
    header_->keeper = keeps_ ? Process::self() : Process();
    header_->kept = 1;
}

bool Air::unused_locked() {
    if (header_->kept && (header_->keeper.pid == 0 || header_->keeper.alive())) return false;
    return std::none_of(std::begin(header_->slots), std::end(header_->slots),
                        [](const Slot& slot) { return slot.owner.pid != 0; });
}

void Air::reap_locked() {
    for (std::size_t i = 0; i < kDevices; ++i) {
        const Process& owner = header_->slots[i].owner;
        if (owner.pid != 0 && !owner.alive()) free_locked(i);
    }
}

void Air::remove_locked() {
    header_->removed = 1;
    // Only the holder of its lock takes an air's name away, and another air may have got the name since.
    struct stat status;
    if (stat(path_of(name_).c_str(), &status) == 0 && status.st_ino == mapping_.inode()) unlink(path_of(name_).c_str());
}

void Air::claim_locked(const std::string& serial) {
    Slot* choice = nullptr;
    for (Slot& slot : header_->slots) {
        const bool same = serial == slot.serial;
        if (slot.owner.pid != 0) {
            if (!same) continue;
            throw InUse("device " + serial + " of air '" + name_ + "' is in use by process " +
                        std::to_string(slot.owner.pid) + (slot.owner.is_self() ? ", this one" : ""));
        }
        // What a device sent last may still be on its way, so the slot free for longest is taken.
        if (same || choice == nullptr || (serial != choice->serial && slot.released_ns < choice->released_ns)) {
            choice = &slot;
        }
    }
    if (choice == nullptr) {
        throw AirError("air '" + name_ + "' has its " + std::to_string(kDevices) + " devices: take another air");
    }
    choice->impairments = {};
    for (TxChannel& channel : choice->tx) {
        channel.first_ns = kNever;
        cut(channel, now_ns());
        cut(channel.tunings, now_ns());
    }
    for (RxChannel& channel : choice->rx) {
        channel.next_ns = kNever;
        cut(channel.tunings, now_ns());
    }
    put(choice->serial, serial);
    choice->owner = Process::self();
    slot_ = static_cast<std::size_t>(choice - header_->slots);
    claims_ = true;
    ++header_->changes;
}

void Air::free_locked(std::size_t index) {
    Slot& slot = header_->slots[index];
    slot.owner = Process();
    slot.released_ns = monotonic_ns();
    for (TxChannel& channel : slot.tx) channel.open_until_ns = kNever;
    for (RxChannel& channel : slot.rx) channel.next_ns = kNever;
    ++header_->changes;
    advance_locked();
}

// Time goes on to the earliest next sample of a receiver, and never past the end of what a transmitter has sent of a
// burst that goes on. It stands still while receivers are idle, so that what comes next does not depend on how long
// they are; when the last one has gone, transmitters go on by themselves.
void Air::advance_locked() {
    if (header_->bursts >= header_->wait_streams) {
        std::int64_t received = kNever;
        std::int64_t sent = kNever;
        for (const Slot& slot : header_->slots) {
            for (const RxChannel& channel : slot.rx) received = std::min(received, channel.next_ns.load());
            for (const TxChannel& channel : slot.tx) sent = std::min(sent, channel.open_until_ns.load());
        }
        const bool alone = received == kNever && header_->received;
        const std::int64_t to = std::min(received, sent);
        if ((received < kIdle || alone) && to < kIdle && to > header_->now_ns) header_->now_ns = to;
    }
    wake(header_->events);
}

Sample* Air::samples(std::size_t slot, std::size_t channel) {
    auto* rings = reinterpret_cast<std::byte*>(header_) + kHeaderBytes;
    return reinterpret_cast<Sample*>(rings + (slot * kChannels + channel) * kRingBytes);
}

void Air::reserve_samples(std::size_t slot, std::size_t channel) {
    const auto offset = static_cast<off_t>(kHeaderBytes + (slot * kChannels + channel) * kRingBytes);
    if (fallocate(mapping_.file(), 0, offset, kRingBytes) != 0) {
        throw AirError("air '" + name_ + "' has no room in " + kFolder + " for another transmitter's " +
                       std::to_string(kRingBytes >> 20) + " MiB: " + reason(errno));
    }
}

void check_name(const std::string& what, const std::string& name) {
    const bool fits = !name.empty() && name.size() < kNameBytes && name[0] != '.' &&
                      name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") ==
                          std::string::npos;
    if (!fits) {
        throw AirError("'" + name + "' cannot be " + what + ": up to " + std::to_string(kNameBytes - 1) +
                       " letters, digits, '_', '-' and '.'");
    }
}

std::string port_name(const std::string& serial, std::size_t channel) { return serial + ":" + std::to_string(channel); }

}  // namespace fadelab

#include "liquid.hpp"

namespace gr::fadelab::ofdm {

std::mutex& global_lock() {
    static std::mutex lock;
    return lock;
}

}  // namespace gr::fadelab::ofdm

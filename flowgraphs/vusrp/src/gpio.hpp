// General-purpose pins. Nothing is connected to them: an output reads as it is driven, an input reads 0.

#pragma once

#include <uhd/property_tree.hpp>

#include <functional>

namespace fadelab {

struct Activity {
    bool receiving;
    bool transmitting;
};

// Adds a bank of pins to a device's tree, as UHD's multi_usrp looks for it.
void add_gpio(const uhd::property_tree::sptr& tree, const uhd::fs_path& bank, std::function<Activity()> activity);

}  // namespace fadelab

#include "gpio.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fadelab {
namespace {

using Register = std::uint32_t;
using Words = std::vector<std::string>;
constexpr std::size_t kPins = 32;

Register pins_with(const Words& words, const std::string& word) {
    Register pins = 0;
    for (std::size_t i = 0; i < words.size(); ++i) pins |= Register{words[i] == word} << i;
    return pins;
}

}  // namespace

void add_gpio(const uhd::property_tree::sptr& tree, const uhd::fs_path& bank, std::function<Activity()> activity) {
    // UHD 4.3 has a word for each pin in these two registers. A pin of CTRL whose word is GPIO has the bit 1, and so
    // follows the ATR registers (lib/include/uhdlib/usrp/gpio_defs.hpp, usrp/cores/gpio_atr_3000.cpp:set_gpio_attr).
    tree->create<Words>(bank / "CTRL").set(Words(kPins, "GPIO"));
    tree->create<Words>(bank / "DDR").set(Words(kPins, "INPUT"));
    for (const char* name : {"OUT", "ATR_0X", "ATR_RX", "ATR_TX", "ATR_XX"}) tree->create<Register>(bank / name).set(0);
    tree->create<Register>(bank / "READBACK").set_publisher([tree = tree.get(), bank, activity = std::move(activity)] {
        const auto [receiving, transmitting] = activity();
        const char* state = receiving ? transmitting ? "ATR_XX" : "ATR_RX" : transmitting ? "ATR_TX" : "ATR_0X";
        const Register automatic = pins_with(tree->access<Words>(bank / "CTRL").get(), "GPIO");
        const Register driven = pins_with(tree->access<Words>(bank / "DDR").get(), "OUTPUT");
        const Register set = tree->access<Register>(bank / "OUT").get();
        return driven & ((tree->access<Register>(bank / state).get() & automatic) | (set & ~automatic));
    });
}

}  // namespace fadelab

// USRP B210: two channels each way on USB 3.

#include "profiles/b2xx.hpp"

namespace fadelab {
namespace {

Profile b210() {
    // b200_impl.cpp:b200_impl: side A is the AD9361's second front end
    Profile one = b2xx("B210", {{"A", "A", "FE-RX2", "FE-TX2"}, {"A", "B", "FE-RX1", "FE-TX1"}});
    one.name = "b210";
    one.eeprom = {{"product", "2"}, {"revision", "4"}};  // b200_iface.hpp:B2XX_PRODUCT_ID
    return one;
}

const Declared declared(b210());

}  // namespace
}  // namespace fadelab

// USRP B200: one channel each way on USB 3.

#include "profiles/b2xx.hpp"

namespace fadelab {
namespace {

Profile b200() {
    // b200_impl.cpp:b200_impl: from revision 5 on it has an AD9364, which has a first front end only
    Profile one = b2xx("B200", {{"A", "A", "FE-RX1", "FE-TX1"}});
    one.name = "b200";
    one.eeprom = {{"product", "1"}, {"revision", "5"}};  // b200_iface.hpp:B2XX_PRODUCT_ID
    return one;
}

const Declared declared(b200());

}  // namespace
}  // namespace fadelab

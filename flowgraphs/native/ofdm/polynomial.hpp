// Polynomials of least squares through values at places that stay the same.

#pragma once

#include <cstddef>
#include <vector>

namespace gr::fadelab::ofdm {

class Polynomial {
public:
    // Of order `order`, or lower if there are not more places than that. At least one place, and no two alike.
    Polynomial(const std::vector<double>& places, std::size_t order);

    // Puts the fitted polynomial's values in place of those it is fitted to, one per place.
    void smooth(std::vector<double>& values) const;

private:
    std::vector<std::vector<double>> basis_;  // orthonormal polynomials, by places
};

}  // namespace gr::fadelab::ofdm

#include "polynomial.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace gr::fadelab::ofdm {

namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void subtract(std::vector<double>& from, const std::vector<double>& what, double times) {
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] -= times * what[i];
    }
}

}  // namespace

// Gram and Schmidt, twice each for the sake of rounding.
Polynomial::Polynomial(const std::vector<double>& places, std::size_t order) {
    std::vector<double> next(places.size(), 1.0);
    for (std::size_t power = 0; power <= std::min(order, places.size() - 1); ++power) {
        for (int pass = 0; pass < 2; ++pass) {
            for (const auto& before : basis_) {
                subtract(next, before, dot(next, before));
            }
        }
        const double length = std::sqrt(dot(next, next));
        std::for_each(next.begin(), next.end(), [&](double& value) { value /= length; });
        basis_.push_back(next);
        std::transform(next.begin(), next.end(), places.begin(), next.begin(), std::multiplies<>());
    }
}

void Polynomial::smooth(std::vector<double>& values) const {
    std::vector<double> smoothed(values.size());
    for (const auto& polynomial : basis_) {
        subtract(smoothed, polynomial, -dot(values, polynomial));
    }
    values = smoothed;
}

}  // namespace gr::fadelab::ofdm

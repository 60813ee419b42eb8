#include "tap_basis.hpp"

#include <Eigen/Dense>

#include <cmath>

namespace gr::fadelab::ofdm {

namespace {

// Directions with less than this share of the strongest one's amplitude are noise alone.
constexpr double kLeastShare = 1e-3;

}  // namespace

std::vector<std::vector<Sample>> tap_basis(const Format& format) {
    using Matrix = Eigen::MatrixXcd;
    const auto& active = format.active();
    const auto rows = static_cast<Eigen::Index>(active.size());
    const auto columns = static_cast<Eigen::Index>(format.cyclic_prefix());
    Matrix taps(rows, columns);
    for (Eigen::Index row = 0; row < rows; ++row) {
        for (Eigen::Index column = 0; column < columns; ++column) {
            const auto turns = static_cast<double>(active[row] * column % format.subcarriers());
            taps(row, column) = std::polar(1.0, -2.0 * M_PI * turns / static_cast<double>(format.subcarriers()));
        }
    }
    const Eigen::SelfAdjointEigenSolver<Matrix> solved(taps.adjoint() * taps);
    const Eigen::VectorXd& squares = solved.eigenvalues();
    const double least = kLeastShare * kLeastShare * squares.maxCoeff();
    std::vector<std::vector<Sample>> basis;
    for (Eigen::Index at = 0; at < columns; ++at) {
        if (squares(at) > least) {
            const Eigen::VectorXcd direction = taps * solved.eigenvectors().col(at) / std::sqrt(squares(at));
            const Eigen::VectorXcf rounded = direction.cast<Sample>();
            basis.emplace_back(rounded.begin(), rounded.end());
        }
    }
    return basis;
}

}  // namespace gr::fadelab::ofdm

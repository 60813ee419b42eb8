#include <map>
#include <stdexcept>

#include "profiles/profile.hpp"

namespace fadelab {
namespace {

std::map<std::string, Profile>& declared() {
    static std::map<std::string, Profile> profiles;
    return profiles;
}

}  // namespace

const Profile& profile(const std::string& name) { return declared().at(name); }

std::vector<std::string> profile_names() {
    std::vector<std::string> names;
    for (const auto& [name, one] : declared()) names.push_back(name);
    return names;
}

Declared::Declared(Profile profile) {
    const std::string name = profile.name;
    if (!declared().emplace(name, std::move(profile)).second) throw std::logic_error("two profiles are named " + name);
}

}  // namespace fadelab

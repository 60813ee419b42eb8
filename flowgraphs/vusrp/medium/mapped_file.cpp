#include "medium/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace fadelab::medium {

MappedFile::MappedFile(const std::string& path) {
    const auto fail = [&path](const std::string& why) { throw std::runtime_error(path + ": " + why); };
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail(std::generic_category().message(errno));
    struct stat status = {};
    void* data = MAP_FAILED;
    int error = 0;
    if (::fstat(file, &status) != 0) {
        error = errno;
    } else if (S_ISREG(status.st_mode) && status.st_size > 0) {
        data = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, file, 0);
        if (data == MAP_FAILED) error = errno;
    }
    ::close(file);
    if (data == MAP_FAILED) fail(error != 0 ? std::generic_category().message(error) : "is empty or not a file");
    data_ = static_cast<const char*>(data);
    size_ = static_cast<std::size_t>(status.st_size);
}

MappedFile::~MappedFile() { ::munmap(const_cast<char*>(data_), size_); }

}  // namespace fadelab::medium

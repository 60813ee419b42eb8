// A file mapped into memory, read only.

#pragma once

#include <cstddef>
#include <string>

namespace fadelab::medium {

class MappedFile {
public:
    // Throws std::runtime_error, one line naming the file, when it cannot be mapped or is empty.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const char* data() const { return data_; }
    std::size_t size() const { return size_; }

private:
    const char* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace fadelab::medium

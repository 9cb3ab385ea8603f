// The simulated address space: caller-owned buffers at byte addresses, nothing in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ember {

class AddressMap {
public:
    // The buffer must outlive the mapping. Regions must not overlap; the caller checks that.
    void map(uint64_t base, uint8_t* data, uint64_t bytes, bool is_writable) {
        const auto place = std::upper_bound(
            regions_.begin(), regions_.end(), base,
            [](uint64_t value, const Region& region) { return value < region.base; });
        regions_.insert(place, Region{base, bytes, data, is_writable});
    }

    void clear() {
        regions_.clear();
        latest_ = 0;
    }

    // The bytes [address, address + bytes), or null unless one region holds all of them.
    const uint8_t* find(uint64_t address, uint64_t bytes) {
        const Region* region = region_of(address, bytes);
        return region ? region->data + (address - region->base) : nullptr;
    }

    // The same, to be written; null too if the region is only read.
    uint8_t* find_writable(uint64_t address, uint64_t bytes) {
        const Region* region = region_of(address, bytes);
        if (!region || !region->is_writable) return nullptr;
        return region->data + (address - region->base);
    }

private:
    struct Region {
        uint64_t base;
        uint64_t bytes;
        uint8_t* data;
        bool is_writable;

        // Differences, not sums: base + bytes may be 2**64.
        bool holds(uint64_t address, uint64_t count) const {
            return address >= base && address - base < bytes && count <= bytes - (address - base);
        }
    };

    const Region* region_of(uint64_t address, uint64_t bytes) {
        if (latest_ < regions_.size() && regions_[latest_].holds(address, bytes)) {
            return &regions_[latest_];
        }
        const auto after = std::upper_bound(
            regions_.begin(), regions_.end(), address,
            [](uint64_t value, const Region& region) { return value < region.base; });
        if (after == regions_.begin()) return nullptr;
        const auto region = after - 1;
        if (!region->holds(address, bytes)) return nullptr;
        latest_ = static_cast<size_t>(region - regions_.begin());
        return &*region;
    }

    std::vector<Region> regions_;
    size_t latest_ = 0;
};

}  // namespace ember

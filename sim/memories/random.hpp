// A seeded generator whose sequence is the same on every machine and compiler.
#pragma once

#include <cstdint>

namespace ember {

// SplitMix64. Ref: Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t next() {
        uint64_t value = (state_ += 0x9e3779b97f4a7c15u);
        value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
        value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
        return value ^ (value >> 31);
    }

    // Uniform in [low, high].
    uint64_t between(uint64_t low, uint64_t high) { return low + next() % (high - low + 1); }

    bool chance(double probability) {
        return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
    }

private:
    uint64_t state_;
};

}  // namespace ember

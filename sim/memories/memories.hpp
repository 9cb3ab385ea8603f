// From the C description of a memory to the model.
#pragma once

#include <memory>
#include <vector>

#include "memories.h"
#include "memory.hpp"

namespace ember {

std::unique_ptr<Memory> make_memory(const MemoryPort& port, const EmberMemory& choice);

// The commands that a DRAM has issued since it was made; null for another memory.
const std::vector<EmberDramCommand>* dram_commands(const Memory& memory);

}  // namespace ember

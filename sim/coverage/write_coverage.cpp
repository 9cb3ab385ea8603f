// What models that count coverage have beyond harness.h.

#include "verilated.h"
#include "verilated_cov.h"

// Writes the counts of the model that this thread called last.
extern "C" __attribute__((visibility("default"))) void ember_write_coverage(const char* path) {
    Verilated::threadContextp()->coveragep()->write(path);
}

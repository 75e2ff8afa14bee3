/// Version and build information.
#pragma once

#include <string>

#pragma GCC visibility push(default)

namespace rill {

/// The version, e.g. "0.1.0".
const char* version() noexcept;

/// The instruction set used by the kernels: "baseline", "x86-64-v3", "x86-64-v4" or "x86-64-v4 with AMX".
const char* simd_name() noexcept;

/// The BLAS library in use, with its version and processor type.
const char* blas_name() noexcept;

/// One line: version, instruction set, threads and BLAS.
std::string about();

}  // namespace rill

#pragma GCC visibility pop

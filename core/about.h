/// Description of this build of rill and of its host.
#pragma once

#include <string>

#pragma GCC visibility push(default)

namespace rill {

/// The version of rill, e.g. "0.1.0".
const char* version() noexcept;

/// The instruction set that the kernels use: "baseline", "x86-64-v3", "x86-64-v4" or "x86-64-v4 with AMX".
const char* simd_name() noexcept;

/// The name, version and processor type of the BLAS in use.
const char* blas_name() noexcept;

/// A one-line summary of version, instruction set, threads and BLAS.
std::string about();

}  // namespace rill

#pragma GCC visibility pop

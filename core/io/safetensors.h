/// Saving and loading of named tensors in the safetensors format, which PyTorch, NumPy and others support.
///
/// A file consists of the header length (8 bytes), a JSON header with dtype, shape and data offsets of each
/// tensor, and the elements, row-major and little-endian (https://huggingface.co/docs/safetensors). rill
/// supports the dtypes F32, F64, I64 and BOOL. The header is fully validated before tensors are allocated.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

class AtomicFile;

/// An ordered list of named tensors.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// The contents of a safetensors file.
struct SafetensorsFile {
  NamedTensors tensors;                         ///< in the order of the header
  std::map<std::string, std::string> metadata;  ///< free-form text

  /// The tensor `name`, or nullptr.
  const Tensor* find(std::string_view name) const noexcept;
  /// The tensor `name`; if there is none, throws and lists the names in the file.
  const Tensor& at(std::string_view name) const;
};

/// Writes a file atomically. Strided tensors are written row-major, views and tied tensors in full.
///
/// Loading preserves the order of `tensors`. The data of wider dtypes come first in the file, so that all
/// elements are aligned. Throws for an undefined tensor, for a name that is duplicate, "__metadata__" or not
/// UTF-8, and if the file cannot be written.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});
/// The same into `file`, which the caller commits; allows several files to change together.
void write_safetensors(AtomicFile& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Reads a file. Throws Error naming the file and the fault: a missing or non-regular file; a header that is
/// truncated, longer than 100 MB or not strict JSON; duplicate names; an unsupported dtype; more than 8
/// dimensions; data offsets that do not match the shape, overlap, leave a gap or exceed the file; a BOOL
/// other than 0 and 1.
SafetensorsFile load_safetensors(const std::filesystem::path& path);

/// The contents of the file that save_safetensors would write.
std::vector<std::byte> safetensors_to_bytes(const NamedTensors& tensors,
                                            const std::map<std::string, std::string>& metadata = {});

/// Parses the contents of a safetensors file; throws as load_safetensors. `label` names the bytes in errors.
SafetensorsFile safetensors_from_bytes(std::span<const std::byte> bytes, const std::string& label = "buffer");

}  // namespace rill

#pragma GCC visibility pop

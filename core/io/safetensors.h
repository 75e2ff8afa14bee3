/// Named tensors in and out, as safetensors: the files that the tools of PyTorch, NumPy and others read and
/// write.
///
/// A file is the length of its header (8 bytes), a JSON header with dtype, shape and place of each tensor,
/// and the numbers, row-major and little-endian (https://huggingface.co/docs/safetensors). rill knows the
/// dtypes F32, F64, I64 and BOOL. Files are checked wholly before anything of their size is allocated.
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

/// Tensors with names, in order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Contents of a file.
struct SafetensorsFile {
  NamedTensors tensors;                         ///< in the order of the header
  std::map<std::string, std::string> metadata;  ///< free text that came with them

  /// The tensor `name`, or null.
  const Tensor* find(std::string_view name) const noexcept;
  /// The tensor `name`; throws listing the names there are.
  const Tensor& at(std::string_view name) const;
};

/// Writes a file, as a whole or not at all. Strided tensors are written row-major, views and tied tensors in
/// full.
///
/// Reading gives the order of `tensors` back. In the file wider dtypes come first, so that every number is
/// aligned. Throws on an undefined tensor, on a name that comes twice, is "__metadata__" or is not UTF-8, and
/// when the file cannot be written.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});
/// The same into a file begun by the caller, who commits it: so that several files change together.
void write_safetensors(AtomicFile& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Reads a file. Throws Error naming the file and what is wrong with it: missing or no regular file, a header
/// that is cut off, too long (100 MB) or no strict JSON, names that come twice, another dtype, more than 8
/// dimensions, numbers that do not fill their shape, overlap, leave a gap or lie outside the file, a BOOL
/// that is neither 0 nor 1.
SafetensorsFile load_safetensors(const std::filesystem::path& path);

/// The bytes that save_safetensors writes.
std::vector<std::byte> safetensors_to_bytes(const NamedTensors& tensors,
                                            const std::map<std::string, std::string>& metadata = {});

/// Parses the bytes of a safetensors file; `label` names them in errors.
SafetensorsFile safetensors_from_bytes(std::span<const std::byte> bytes, const std::string& label = "buffer");

}  // namespace rill

#pragma GCC visibility pop

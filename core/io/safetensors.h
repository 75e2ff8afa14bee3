/// Reading and writing named tensors as safetensors files, which PyTorch, NumPy and other tools exchange.
///
/// A file is the length of its header (8 bytes), a JSON header with dtype, shape and offsets of each tensor,
/// and the data, row-major and little-endian (https://huggingface.co/docs/safetensors). rill supports the
/// dtypes F32, F64, I64 and BOOL. Files are validated before memory of their size is allocated.
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
  std::map<std::string, std::string> metadata;  ///< free text stored with them

  /// The tensor `name`, or nullptr.
  const Tensor* find(std::string_view name) const noexcept;
  /// The tensor `name`; throws listing the existing names.
  const Tensor& at(std::string_view name) const;
};

/// Writes a file atomically. Strided tensors are written row-major, views and tied tensors in full.
///
/// Reading restores the order of `tensors`; in the file, wider dtypes come first, so that every element is
/// aligned. Throws for an undefined tensor, for a name that is a duplicate, "__metadata__" or not UTF-8, and
/// if the file cannot be written.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});
/// The same to a file that the caller opened and commits, so that several files can change together.
void write_safetensors(AtomicFile& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Reads a file. Throws Error naming the file and the fault: missing or not a regular file; a header that is
/// truncated, longer than 100 MB or not strict JSON; duplicate names; an unsupported dtype; more than 8
/// dimensions; data that does not match its shape, overlaps, leaves a gap or lies outside the file; a BOOL
/// that is neither 0 nor 1.
SafetensorsFile load_safetensors(const std::filesystem::path& path);

/// The bytes that save_safetensors writes.
std::vector<std::byte> safetensors_to_bytes(const NamedTensors& tensors,
                                            const std::map<std::string, std::string>& metadata = {});

/// Parses the bytes of a safetensors file; `label` names them in errors.
SafetensorsFile safetensors_from_bytes(std::span<const std::byte> bytes, const std::string& label = "buffer");

}  // namespace rill

#pragma GCC visibility pop

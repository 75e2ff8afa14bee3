/// IDX files, the format of MNIST and similar data sets, gzip-compressed or not.
///
/// Big-endian: two zero bytes, the type (8: unsigned bytes), the number of dimensions, their sizes, the
/// bytes. Source: LeCun, Cortes and Burges, "The MNIST database of handwritten digits".
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace classifier {

/// An array of unsigned bytes.
struct Idx {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> bytes;
};

/// Reads an IDX file of unsigned bytes. Throws rill::Error naming the file if it is missing, not an IDX
/// file, of another element type, shorter or longer than its sizes say, or larger than 4 GB.
Idx read_idx(const std::filesystem::path& path);

}  // namespace classifier

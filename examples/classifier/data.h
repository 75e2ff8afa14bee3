/// Sequences with what is to be said about them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <rill/core/random.h>
#include <rill/core/tensor.h>

namespace classifier {

/// Sequences [N, T, I] with a class each (int64 [N]) or a number each (float32 [N]).
struct Data {
  rill::Tensor x;
  rill::Tensor y;

  std::int64_t size() const { return x.size(0); }
  /// The given rows as a batch.
  Data batch(const std::vector<std::int64_t>& rows) const;
};

/// Images of an IDX file as sequences of their rows, values 0 … 1; `width` features a row, zeros behind the
/// image's own (0: the image's width). Throws when images and labels do not fit each other or width is below
/// the image's.
Data read_images(const std::filesystem::path& images, const std::filesystem::path& labels,
                 std::int64_t width = 0);

/// The adding problem: T pairs (a number in [0, 1), a mark); the sum of the two marked numbers, one in each
/// half, is wanted. Always saying 1 has a mean squared error of 0.167. (Hochreiter and Schmidhuber 1997.)
Data adding_problem(std::int64_t count, std::int64_t steps, rill::Rng& rng);

}  // namespace classifier

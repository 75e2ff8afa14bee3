/// Labelled sequences.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <rill/core/random.h>
#include <rill/core/tensor.h>

namespace classifier {

/// Sequences [N, T, I], each labelled by a class (int64 [N]) or a number (float32 [N]).
struct Dataset {
  rill::Tensor x;
  rill::Tensor y;

  std::int64_t size() const { return x.size(0); }
  /// The given rows as a batch.
  Dataset batch(const std::vector<std::int64_t>& rows) const;
};

/// The images of an IDX file as sequences of their rows, values 0 … 1, padded with zeros to `width`
/// features per row (0: the width of the images). Throws if images and labels do not fit each other or the
/// images are wider.
Dataset read_images(const std::filesystem::path& images, const std::filesystem::path& labels,
                    std::int64_t width = 0);

/// The adding problem: T pairs of a number in [0, 1) and a mark; the label is the sum of the two marked
/// numbers, one in each half. Always predicting 1 has a mean squared error of 0.167. (Hochreiter and
/// Schmidhuber 1997.)
Dataset adding_problem(std::int64_t count, std::int64_t steps, rill::Rng& rng);

}  // namespace classifier

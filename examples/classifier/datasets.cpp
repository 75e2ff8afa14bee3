#include <classifier/datasets.h>

#include <classifier/idx.h>
#include <rill/core/ops.h>

namespace classifier {

using rill::Tensor;

Dataset Dataset::batch(const std::vector<std::int64_t>& rows) const {
  const Tensor index = rill::tensor(rows, {static_cast<std::int64_t>(rows.size())});
  Tensor labels = rill::empty({index.numel()}, y.dtype());
  for (std::int64_t i = 0; i < index.numel(); ++i) {
    labels.narrow(0, i, 1).copy_(y.narrow(0, rows[static_cast<std::size_t>(i)], 1));
  }
  return {rill::index_select(x, 0, index), labels};
}

Dataset read_images(const std::filesystem::path& images, const std::filesystem::path& labels,
                    std::int64_t width) {
  const Idx pictures = read_idx(images), classes = read_idx(labels);
  rill::check(pictures.sizes.size() == 3, "{}: {} dimensions; images have 3 (count, rows, columns)",
              images.string(), pictures.sizes.size());
  rill::check(classes.sizes.size() == 1, "{}: {} dimensions; labels have 1", labels.string(),
              classes.sizes.size());
  const std::int64_t count = pictures.sizes[0], rows = pictures.sizes[1], columns = pictures.sizes[2];
  rill::check(classes.sizes[0] == count, "{} holds {} images, but {} {} labels", images.string(), count,
              labels.string(), classes.sizes[0]);
  rill::check(count > 0 && rows > 0 && columns > 0, "{}: no images", images.string());
  rill::check(width == 0 || width >= columns, "{}: rows of {} pixels do not fit {} features", images.string(),
              columns, width);
  const std::int64_t features = width == 0 ? columns : width;
  Dataset out{rill::zeros({count, rows, features}), rill::empty({count}, rill::int64)};
  float* x = out.x.mutable_data<float>();
  for (std::int64_t row = 0; row < count * rows; ++row) {
    for (std::int64_t c = 0; c < columns; ++c) {
      x[row * features + c] =
          static_cast<float>(pictures.bytes[static_cast<std::size_t>(row * columns + c)]) / 255.0f;
    }
  }
  std::copy(classes.bytes.begin(), classes.bytes.end(), out.y.mutable_data<std::int64_t>());
  return out;
}

Dataset adding_problem(std::int64_t count, std::int64_t steps, rill::Rng& rng) {
  rill::check(steps >= 2, "the adding problem needs at least 2 steps, not {}", steps);
  Dataset out{rill::zeros({count, steps, 2}), rill::zeros({count})};
  float* x = out.x.mutable_data<float>();
  float* y = out.y.mutable_data<float>();
  const std::int64_t half = steps / 2;
  for (std::int64_t i = 0; i < count; ++i) {
    float* sequence = x + i * steps * 2;
    for (std::int64_t t = 0; t < steps; ++t) sequence[t * 2] = static_cast<float>(rng.uniform());
    const auto first = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(half)));
    const auto second = half + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(steps - half)));
    for (std::int64_t t : {first, second}) {
      sequence[t * 2 + 1] = 1;
      y[i] += sequence[t * 2];
    }
  }
  return out;
}

}  // namespace classifier

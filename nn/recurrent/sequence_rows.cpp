#include <rill/nn/recurrent/sequence_rows.h>

#include <algorithm>
#include <numeric>

#include <rill/core/ops/packed_weight.h>

namespace rill::nn {
namespace {

/// Floating-point operations per chunk, about 20 microseconds.
constexpr double flops_of_chunk = 2e6;
/// Elements per chunk of a copy.
constexpr std::int64_t grain_elements = 16384;

}  // namespace

SequenceRows::SequenceRows(const char* op, std::int64_t steps, std::int64_t batch, const Tensor& lengths)
    : steps_(steps), batch_(batch) {
  if (!lengths.defined()) return;
  check(lengths.dtype() == int64 && lengths.shape() == Shape{batch},
        "{}: lengths are {} {}; a batch of {} sequences needs int64 [{}]", op, name(lengths.dtype()),
        lengths.shape(), batch, batch);
  const std::vector<std::int64_t> given = lengths.to_vector<std::int64_t>();
  for (std::size_t i = 0; i < given.size(); ++i) {
    check(0 <= given[i] && given[i] <= steps, "{}: length {} of sequence {} is outside 0..{}", op, given[i],
          i, steps);
  }
  if (std::all_of(given.begin(), given.end(), [&](std::int64_t n) { return n == steps; })) return;
  order_.resize(given.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto length_of = [&](std::int64_t i) { return given[static_cast<std::size_t>(i)]; };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::int64_t a, std::int64_t b) { return length_of(a) > length_of(b); });
  for (std::int64_t i : order_) lengths_.push_back(length_of(i));
  firsts_.push_back(0);
  std::int64_t active = batch;
  for (std::int64_t t = 0; t < steps; ++t) {
    while (active > 0 && length(active - 1) <= t) --active;
    firsts_.push_back(firsts_.back() + active);
  }
}

/// x as a matrix that shares its data; undefined if its layout has no contiguous, distinct rows.
Tensor SequenceRows::as_rows(const Tensor& x) const {
  if (ragged()) return {};
  const std::int64_t width = x.size(2);
  const std::int64_t stride = batch_ > 1 ? x.stride(1) : steps_ > 1 ? x.stride(0) : width;
  const bool even = batch_ <= 1 || steps_ <= 1 || x.stride(0) == batch_ * stride;
  if (!even || stride < width || (width > 1 && x.stride(2) != 1)) return {};
  return detail::make_view(x.impl().storage, x.dtype(), {steps_ * batch_, width},
                           {std::max<std::int64_t>(stride, 1), 1}, x.impl().offset);
}

/// Calls f(t, batch index, row) for all valid rows, in parallel.
template <class F>
void SequenceRows::each_row(std::int64_t width, F&& f) const {
  const std::int64_t per_step = std::max<std::int64_t>(width * batch_, 1);
  const std::int64_t grain = std::max<std::int64_t>(grain_elements / per_step, 1);
  parallel_for(steps_, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t p = 0; p < active(t); ++p) f(t, batch_index(p), first(t) + p);
    }
  });
}

Tensor SequenceRows::gather(const Tensor& x) const {
  if (Tensor rows = as_rows(x); rows.defined()) return rows;
  const std::int64_t width = x.size(2), by_t = x.stride(0), by_b = x.stride(1), by_column = x.stride(2);
  Tensor rows = empty({count(), width}, x.dtype());
  visit_floating("gather", x.dtype(), [&]<class T>(Type<T>) {
    const T* from = detail::raw<const T>(x);
    T* to = rows.mutable_data<T>();
    each_row(width, [&](std::int64_t t, std::int64_t b, std::int64_t row) {
      const T* line = from + t * by_t + b * by_b;
      T* values = to + row * width;
      if (by_column == 1) {
        std::copy_n(line, width, values);
      } else {
        for (std::int64_t j = 0; j < width; ++j) values[j] = line[j * by_column];
      }
    });
  });
  return rows;
}

void SequenceRows::scatter(const Slot& slot, const Tensor& rows) const {
  Tensor x = slot.to;
  if (slot.beta == 0 && ragged()) x.zero_();
  const std::int64_t width = x.size(2), by_t = x.stride(0), by_b = x.stride(1), by_column = x.stride(2);
  visit_floating("scatter", x.dtype(), [&]<class T>(Type<T>) {
    const T* from = detail::raw<const T>(rows);
    T* to = detail::raw<T>(x);
    const T beta = static_cast<T>(slot.beta);
    each_row(width, [&](std::int64_t t, std::int64_t b, std::int64_t row) {
      T* line = to + t * by_t + b * by_b;
      const T* values = from + row * width;
      if (beta == 0 && by_column == 1) {
        std::copy_n(values, width, line);
      } else {
        for (std::int64_t j = 0; j < width; ++j) {
          T& element = line[j * by_column];
          element = beta == 0 ? values[j] : element + values[j];
        }
      }
    });
  });
}

Tensor SequenceRows::reordered(const Tensor& from, bool back) const {
  if (!ragged()) return from.detach().contiguous();
  const Tensor to = empty(from.shape(), from.dtype());
  for (std::int64_t position = 0; position < batch_; ++position) {
    const std::int64_t index = batch_index(position);
    to.select(-2, back ? index : position).copy_(from.detach().select(-2, back ? position : index));
  }
  return to;
}

std::vector<std::int64_t> SequenceRows::chunk_borders(std::int64_t flops, DType dtype,
                                                      std::int64_t batches) const {
  const double work = static_cast<double>(count()) * static_cast<double>(flops);
  const std::int64_t least = dtype == float32 ? row_granularity(batch_) : 1;
  const std::int64_t worth = (batch_ + least - 1) / least;
  const auto most =
      static_cast<double>(std::min<std::int64_t>((num_threads() + batches - 1) / batches, worth));
  const auto wanted =
      std::max<std::int64_t>(static_cast<std::int64_t>(std::min(work / flops_of_chunk, most)), 1);
  std::vector<std::int64_t> borders{0};
  std::int64_t passed = 0;
  for (std::int64_t position = 0; position + 1 < batch_; ++position) {
    passed += length(position);
    const auto made = static_cast<std::int64_t>(borders.size());
    if (made < wanted && passed * wanted >= made * count()) borders.push_back(position + 1);
  }
  borders.push_back(batch_);
  return borders;
}

}  // namespace rill::nn

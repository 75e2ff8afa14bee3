#include <rill/nn/packed_rows.h>

#include <algorithm>
#include <numeric>

#include <rill/core/parallel.h>

namespace rill::nn {
namespace {

/// Steps that are worth a piece of work of their own when `row` elements are copied in each.
std::int64_t copy_grain(std::int64_t elements) { return std::max<std::int64_t>(1, 32768 / (elements + 1)); }

template <class T>
void put(const T* from, std::int64_t n, T beta, T* to) noexcept {
  if (beta == T(0)) {
    std::copy_n(from, n, to);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = beta * to[i] + from[i];
  }
}

}  // namespace

PackedRows::PackedRows(const char* op, std::int64_t steps, std::int64_t batch, const Tensor& lengths)
    : steps_(steps), batch_(batch) {
  if (!lengths.defined()) return;
  check(lengths.dtype() == int64 && lengths.shape() == Shape{batch},
        "{}: lengths are {} {}, the input has {} rows; pass int64 [{}]", op, name(lengths.dtype()),
        lengths.shape(), batch, batch);
  const std::vector<std::int64_t> given = lengths.to_vector<std::int64_t>();
  bool full = true;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = given[static_cast<std::size_t>(b)];
    check(length >= 0 && length <= steps, "{}: length {} of row {} is outside 0..{}, the steps of the input", op,
          length, b, steps);
    full = full && length == steps;
  }
  if (full) return;
  order_.resize(given.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto length_of = [&](std::int64_t b) { return given[static_cast<std::size_t>(b)]; };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::int64_t a, std::int64_t b) { return length_of(a) > length_of(b); });
  for (const std::int64_t b : order_) lengths_.push_back(length_of(b));
  offsets_.push_back(0);
  std::int64_t active = batch;
  for (std::int64_t t = 0; t < steps; ++t) {
    while (active > 0 && length(active - 1) <= t) --active;
    offsets_.push_back(offsets_.back() + active);
  }
}

template <class T>
void PackedRows::gather(const StepRows<const T>& from, std::int64_t width, T* to) const {
  parallel_for(steps_, copy_grain(batch_ * width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t first = offset(t), count = active(t);
      for (std::int64_t k = 0; k < count; ++k) std::copy_n(from.at(t, row(k)), width, to + (first + k) * width);
    }
  });
}

template <class T>
void PackedRows::scatter(const T* from, std::int64_t width, T beta, const StepRows<T>& to) const {
  parallel_for(steps_, copy_grain(batch_ * width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t first = offset(t), count = active(t);
      for (std::int64_t k = 0; k < count; ++k) put(from + (first + k) * width, width, beta, to.at(t, row(k)));
      if (beta != T(0)) continue;
      for (std::int64_t k = count; k < batch_; ++k) std::fill_n(to.at(t, row(k)), width, T(0));
    }
  });
}

template void PackedRows::gather<float>(const StepRows<const float>&, std::int64_t, float*) const;
template void PackedRows::gather<double>(const StepRows<const double>&, std::int64_t, double*) const;
template void PackedRows::scatter<float>(const float*, std::int64_t, float, const StepRows<float>&) const;
template void PackedRows::scatter<double>(const double*, std::int64_t, double, const StepRows<double>&) const;

}  // namespace rill::nn

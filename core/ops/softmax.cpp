#include <rill/core/autograd.h>
#include <rill/core/kernels/column_softmax.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

namespace rill {

using detail::Blocks;
using detail::raw;

namespace {

struct Softmax {
  static constexpr const char* name = "softmax";
  template <class T>
  static constexpr auto row = kernels::row_softmax<T>;
  template <class T>
  static constexpr auto row_backward = kernels::row_softmax_backward<T>;
  template <class T>
  static constexpr auto columns = kernels::column_softmax<T, false>;
  template <class T>
  static constexpr auto columns_backward = kernels::column_softmax_backward<T, false>;
};

struct LogSoftmax {
  static constexpr const char* name = "log_softmax";
  template <class T>
  static constexpr auto row = kernels::row_log_softmax<T>;
  template <class T>
  static constexpr auto row_backward = kernels::row_log_softmax_backward<T>;
  template <class T>
  static constexpr auto columns = kernels::column_softmax<T, true>;
  template <class T>
  static constexpr auto columns_backward = kernels::column_softmax_backward<T, true>;
};

/// Calls row(i) for each row of blocks [outer, size, 1], or columns(i, j, n) for columns j … j + n of each
/// outer block.
template <class Row, class Columns>
void each_row_or_columns(const Blocks& b, const Row& row, const Columns& columns) {
  if (b.inner == 1) {
    detail::parallel_rows(b.outer, b.size, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) row(i);
    });
    return;
  }
  constexpr std::int64_t width = kernels::most_columns;
  const std::int64_t strips = (b.inner + width - 1) / width;
  detail::parallel_rows(b.outer * strips, b.size * width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t j = k % strips * width;
      columns(k / strips, j, std::min(width, b.inner - j));
    }
  });
}

template <class Op, class T>
void forward(const T* x, const Blocks& b, T* y) {
  each_row_or_columns(
      b, [&](std::int64_t i) { Op::template row<T>(x + i * b.outer_stride, y + i * b.size, b.size); },
      [&](std::int64_t i, std::int64_t j, std::int64_t n) {
        Op::template columns<T>(b.size, n, x + i * b.outer_stride + j, b.stride, y + i * b.size * b.inner + j,
                                b.inner);
      });
}

/// y and dx are contiguous; b are the blocks of dy.
template <class Op, class T>
void backward(const T* y, const T* dy, const Blocks& b, T beta, T* dx) {
  each_row_or_columns(
      b,
      [&](std::int64_t i) {
        Op::template row_backward<T>(y + i * b.size, dy + i * b.outer_stride, beta, dx + i * b.size, b.size);
      },
      [&](std::int64_t i, std::int64_t j, std::int64_t n) {
        const std::int64_t at = i * b.size * b.inner + j;
        Op::template columns_backward<T>(b.size, n, y + at, b.inner, dy + i * b.outer_stride + j, b.stride,
                                         beta, dx + at, b.inner);
      });
}

template <class Op>
Tensor along(const Tensor& x, std::int64_t dim) {
  return visit_floating(Op::name, x.dtype(), [&]<class T>(Type<T>) {
    const int first = wrap_dim(Op::name, dim, std::max(x.dim(), 1));
    const int last = std::min(first + 1, x.dim());
    const Tensor y = empty(x.shape(), x.dtype());
    const auto [data, blocks] = detail::blocked(x, first, last);
    forward<Op, T>(raw<const T>(data), blocks, raw<T>(y));
    return record(Op::name, y, {x}, [first, last, y = Saved(y, Op::name)](const Tensor& dy, Grads& d) {
      const auto [gradient, b] = detail::blocked(dy, first, last);
      detail::write_contiguous<T>(d[0].slot(), [&, from = raw<const T>(gradient), &parts = b](T* dx, T beta) {
        backward<Op, T>(y.template data<T>(), from, parts, beta, dx);
      });
    });
  });
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t dim) { return along<Softmax>(x, dim); }
Tensor log_softmax(const Tensor& x, std::int64_t dim) { return along<LogSoftmax>(x, dim); }

}  // namespace rill

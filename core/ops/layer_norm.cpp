#include <rill/core/autograd.h>
#include <rill/core/kernels/layer_norm.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

#include <optional>
#include <utility>

namespace rill {

using detail::raw;
using detail::Rows;
using kernels::RowMoments;

namespace {

void check_arguments(const Tensor& x, const Shape& normalized, const Tensor& weight, const Tensor& bias) {
  const int rank = normalized.size();
  check(rank > 0 && rank <= x.dim(), "layer_norm: normalized_shape {} does not fit x of shape {}", normalized,
        x.shape());
  for (int d = 0; d < rank; ++d) {
    check(x.shape()[x.dim() - rank + d] == normalized[d], "layer_norm: x of shape {} does not end with {}",
          x.shape(), normalized);
  }
  for (const Tensor* p : {&weight, &bias}) {
    if (!p->defined()) continue;
    const char* const what = p == &weight ? "weight" : "bias";
    check(p->shape() == normalized, "layer_norm: the {} is {}, not {}", what, p->shape(), normalized);
    check(p->dtype() == x.dtype(), "layer_norm: the {} is {}, x is {}; use .to({})", what, name(p->dtype()),
          name(x.dtype()), name(x.dtype()));
  }
}

detail::DimSet last_dims(int count, int rank) {
  Dims dims;
  for (int d = rank - count; d < rank; ++d) dims.push_back(d);
  return {"layer_norm", dims, rank};
}

/// Gradients of weight and bias are sums over rows, added up piece by piece: `pieces` rows of sums for each.
constexpr std::int64_t rows_in_piece = 64;

/// sums [pieces, n] of what add(i, row) adds for each row i, added together into d.
template <class T, class Add>
void give_sum_of_rows(GradRef d, std::int64_t rows, std::int64_t n, const Add& add) {
  const std::int64_t pieces = (rows + rows_in_piece - 1) / rows_in_piece;
  const Tensor sums = zeros({pieces, n}, dtype_of<T>);
  detail::parallel_rows(pieces, rows_in_piece * n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t stop = std::min(rows, (k + 1) * rows_in_piece);
      for (std::int64_t i = k * rows_in_piece; i < stop; ++i) add(i, raw<T>(sums) + k * n);
    }
  });
  detail::write_contiguous<T>(
      d.slot(), [&](T* to, T beta) { kernels::sum_rows(pieces, n, raw<const T>(sums), n, beta, to); });
}

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? raw<const T>(t) : nullptr;
}

/// `factor` is the weight or null.
template <class T>
void layer_norm_backward(const Rows& x, const Rows& dy, const RowMoments<T>* moments, const T* factor,
                         Grads& d) {
  const std::int64_t n = x.size();
  if (auto dx = d[0]) {
    detail::write_contiguous<T>(dx.slot(), [&](T* to, T beta) {
      detail::parallel_rows(x.count(), n, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          kernels::normalize_row_backward(x.row<T>(i), moments[i], factor, dy.row<T>(i), beta, to + i * n, n);
        }
      });
    });
  }
  if (auto dw = d[1]) {
    give_sum_of_rows<T>(dw, x.count(), n, [&](std::int64_t i, T* sums) {
      kernels::add_normalized(x.row<T>(i), moments[i], dy.row<T>(i), sums, n);
    });
  }
  if (auto db = d[2]) {
    give_sum_of_rows<T>(db, x.count(), n, [&](std::int64_t i, T* sums) {
      kernels::sum_rows(1, n, dy.row<T>(i), n, T(1), sums);
    });
  }
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  check_arguments(x, normalized_shape, weight, bias);
  check(eps >= 0, "layer_norm: eps is {}; it must not be negative", eps);
  return visit_floating("layer_norm", x.dtype(), [&]<class T>(Type<T>) {
    const detail::DimSet set = last_dims(normalized_shape.size(), x.dim());
    const Rows rows(x, set);
    const std::int64_t n = rows.size();
    const Tensor w = weight.defined() ? weight.detach().contiguous() : Tensor();
    const Tensor b = bias.defined() ? bias.detach().contiguous() : Tensor();
    const Tensor y = empty(x.shape(), x.dtype());
    const Tensor moments = empty({rows.count(), 2}, x.dtype());
    auto* const moment = raw<RowMoments<T>>(moments);
    detail::parallel_rows(rows.count(), n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        moment[i] = kernels::row_moments(rows.row<T>(i), static_cast<T>(eps), n);
        kernels::normalize_row(rows.row<T>(i), moment[i], data_or_null<T>(w), data_or_null<T>(b),
                               raw<T>(y) + i * n, n);
      }
    });
    std::optional<Saved> kept_weight;
    if (w.defined()) kept_weight = save(w, "layer_norm");
    return record(
        "layer_norm", y, {x, weight, bias},
        [set, moments, x = save(x, "layer_norm"), w = std::move(kept_weight)](const Tensor& dy, Grads& d) {
          layer_norm_backward(Rows(x(), set), Rows(dy, set), raw<const RowMoments<T>>(moments),
                              w ? w->template data<T>() : nullptr, d);
        });
  });
}

}  // namespace rill

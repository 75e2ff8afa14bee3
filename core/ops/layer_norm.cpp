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

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? raw<const T>(t) : nullptr;
}

/// d += the sum of the rows of sums [chunks, n].
template <class T>
void give_sum(GradRef d, const Tensor& sums) {
  const std::int64_t n = sums.size(1);
  detail::write_contiguous<T>(
      d.slot(), [&](T* to, T beta) { kernels::sum_rows(sums.size(0), n, raw<const T>(sums), n, beta, to); });
}

/// `factor` is the weight or null. The gradients of weight and bias are sums over rows: chunks of a fixed
/// number of rows are summed while the rows are cached for dx, and the chunk sums are added at the end.
template <class T>
void layer_norm_backward(const Rows& x, const Rows& dy, const RowMoments<T>* moments, const T* factor,
                         Grads& d) {
  constexpr std::int64_t rows_in_chunk = 32;
  const std::int64_t n = x.size();
  const std::int64_t chunks = (x.count() + rows_in_chunk - 1) / rows_in_chunk;
  auto dx = d[0], dw = d[1], db = d[2];
  const Tensor weight_sums = zeros({dw ? chunks : 0, n}, dtype_of<T>);
  const Tensor bias_sums = zeros({db ? chunks : 0, n}, dtype_of<T>);
  const auto run = [&](T* to, T beta) {
    detail::parallel_rows(chunks, rows_in_chunk * n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * rows_in_chunk; i < std::min(end * rows_in_chunk, x.count()); ++i) {
        const T* const row = x.row<T>(i);
        const T* const gradient = dy.row<T>(i);
        const std::int64_t chunk = i / rows_in_chunk;
        if (to) kernels::normalize_row_backward(row, moments[i], factor, gradient, beta, to + i * n, n);
        if (dw) kernels::add_normalized(row, moments[i], gradient, raw<T>(weight_sums) + chunk * n, n);
        if (db) kernels::sum_rows(1, n, gradient, n, T(1), raw<T>(bias_sums) + chunk * n);
      }
    });
  };
  if (dx) {
    detail::write_contiguous<T>(dx.slot(), run);
  } else {
    run(nullptr, T(0));
  }
  if (dw) give_sum<T>(dw, weight_sums);
  if (db) give_sum<T>(db, bias_sums);
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
    if (w.defined()) kept_weight = Saved(w, "layer_norm");
    return record(
        "layer_norm", y, {x, weight, bias},
        [set, moments, x = Saved(x, "layer_norm"), w = std::move(kept_weight)](const Tensor& dy, Grads& d) {
          layer_norm_backward(Rows(x(), set), Rows(dy, set), raw<const RowMoments<T>>(moments),
                              w ? w->template data<T>() : nullptr, d);
        });
  });
}

}  // namespace rill

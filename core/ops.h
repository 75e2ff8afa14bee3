/// The catalogue of differentiable ops.
///
/// Conventions. x, a, b: float32 or float64 tensors of any layout, unless said otherwise; both operands must
/// have the same dtype (no promotion; use `.to`). Operands of pointwise ops broadcast by NumPy's rule. `dim`
/// counts from the end when negative. Sizes of 0 are allowed. Results are new contiguous tensors unless the
/// op is called a view. Names, options and formulas are PyTorch's. Every op throws rill::Error "op: fact with
/// values; remedy" for shapes, dtypes or indices that do not fit.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <rill/core/random.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

// --- pointwise, two operands (ops/binary.cpp)
Tensor add(const Tensor& a, const Tensor& b);  ///< a + b
Tensor sub(const Tensor& a, const Tensor& b);  ///< a - b
Tensor mul(const Tensor& a, const Tensor& b);  ///< a · b
Tensor div(const Tensor& a, const Tensor& b);  ///< a / b
Tensor pow(const Tensor& a, const Tensor& b);  ///< a^b; at a = 0 the gradient of b is 0 for b >= 0
Tensor maximum(const Tensor& a,
               const Tensor& b);  ///< the larger; NaN wins; the gradient of a tie goes half to each
Tensor minimum(const Tensor& a, const Tensor& b);  ///< the smaller; likewise
/// Scalar forms keep the tensor's dtype; the scalar is a constant.
Tensor add(const Tensor& a, double b);
Tensor sub(const Tensor& a, double b);
Tensor mul(const Tensor& a, double b);
Tensor div(const Tensor& a, double b);
Tensor pow(const Tensor& a, double exponent);  ///< x^exponent; gradient 0 for exponent 0, also at x = 0
Tensor rsub(const Tensor& a, double b);        ///< b - a
Tensor rdiv(const Tensor& a, double b);        ///< b / a

// --- operators: add, sub, mul, div, rsub and rdiv
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(double a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(double a, const Tensor& b) { return rdiv(b, a); }

// --- pointwise, one operand (ops/unary.cpp)
Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);    ///< natural; -inf at 0, NaN below
Tensor log1p(const Tensor& x);  ///< log(1 + x)
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  ///< 1 / √x
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor abs(const Tensor& x);  ///< gradient 0 at 0
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sigmoid(const Tensor& x);  ///< 1 / (1 + e^-x); saturates without NaN
Tensor logsigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor relu(const Tensor& x);  ///< max(x, 0); gradient 0 at 0
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor silu(const Tensor& x);  ///< x · sigmoid(x)
enum class Approximate : std::uint8_t { none, tanh };
Tensor gelu(const Tensor& x, Approximate approximate = Approximate::none);  ///< x · Φ(x)
Tensor softplus(const Tensor& x, double beta = 1,
                double threshold = 20);  ///< log(1 + e^{βx}) / β; x where βx > threshold
/// min(max(x, lo), hi), either bound may be absent; the gradient is 1 within the bounds, themselves included.
Tensor clamp(const Tensor& x, std::optional<double> lo, std::optional<double> hi);
inline Tensor operator-(const Tensor& x) { return neg(x); }

// --- choice and comparison (ops/compare.cpp)
/// mask ? a : b, all broadcast; mask boolean. Any dtype of a and b; differentiable for floating ones.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);
/// value where mask (boolean, broadcast to x), else x; no gradient flows through filled elements.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// Boolean results of any one dtype, broadcast; not differentiable.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, double b);
Tensor ne(const Tensor& a, double b);
Tensor lt(const Tensor& a, double b);
Tensor le(const Tensor& a, double b);
Tensor gt(const Tensor& a, double b);
Tensor ge(const Tensor& a, double b);

// --- views (ops/view.cpp): results share the data of x; any dtype
/// The same elements in another shape; one size may be -1. A view where strides allow it, a copy otherwise.
Tensor reshape(const Tensor& x, const Shape& shape);
Tensor flatten(const Tensor& x, std::int64_t start = 0, std::int64_t end = -1);
Tensor permute(const Tensor& x, const Dims& dims);
Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1);
/// `length` entries of dimension dim from `start` (negative: from the end).
Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length);
/// Entries start, start + step, … below end; bounds clamp as in Python, negative ones count from the end;
/// step > 0.
Tensor slice(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1);
/// One entry; the dimension goes.
Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index);
/// Repeats dimensions of size 1 without copying; -1 keeps a size. The gradient sums over what was repeated.
Tensor expand(const Tensor& x, const Shape& shape);
/// Drops dimension dim when its size is 1.
Tensor squeeze(const Tensor& x, std::int64_t dim);
/// Drops every dimension of size 1.
Tensor squeeze(const Tensor& x);
Tensor unsqueeze(const Tensor& x, std::int64_t dim);
/// Pieces of `size` along dim (the last may be shorter), or of the given sizes, which must add up.
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim = 0);
/// At most `chunks` pieces of equal size (the last may be shorter).
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);

// --- copies (ops/copy.cpp); any dtype
Tensor contiguous(const Tensor& x);  ///< x itself where it is contiguous
Tensor clone(const Tensor& x);
/// Joins along an existing dimension; all other sizes and the dtype must agree. At least one tensor.
Tensor cat(const std::vector<Tensor>& tensors, std::int64_t dim = 0);
/// Joins equal shapes along a new dimension.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dim = 0);
Tensor flip(const Tensor& x, const Dims& dims);
Tensor repeat(const Tensor& x, const Dims& repeats);  ///< tiles, as PyTorch's repeat
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
/// Converts between dtypes; floating to int64 truncates (what int64 cannot hold, NaN too, becomes its
/// smallest), to boolean is x != 0. Differentiable between floating ones.
Tensor to(const Tensor& x, DType dtype);

// --- products (ops/matmul.cpp)
/// NumPy's matmul: [K]·[K] → [], [M,K]·[K] → [M], [K]·[K,N] → [N], [..,M,K]·[..,K,N] → [..,M,N], leading
/// sizes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);
/// [B,M,K]·[B,K,N] → [B,M,N].
Tensor bmm(const Tensor& a, const Tensor& b);
/// β c + α a·b with c broadcast to [M, N].
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
/// x·Wᵀ + bias: x [.., in], weight [out, in], bias [out] or undefined → [.., out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// --- reductions (ops/reduce.cpp)
/// Over `dims` (empty: all); keepdim leaves sizes of 1. Fixed order of summation for any number of threads.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< NaN over nothing
Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< 1 over nothing
/// Variance and deviation with divisor max(n - correction, 0).
Tensor var(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
Tensor std(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// log Σ e^x, stable; -inf over nothing; gradient 0 where it is -inf.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);
/// (Σ |x|^p)^(1/p); p may be 0 (count of non-zeros), ±infinity. Gradient 0 at a zero norm.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);
/// Largest and smallest; ties share the gradient evenly; throws over nothing.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Values and indices of max, min and topk.
struct ValuesAndIndices {
  Tensor values;   ///< of x
  Tensor indices;  ///< int64
};
/// Along one dimension with the index of the first extreme; the gradient goes to that element alone. NaN
/// wins.
ValuesAndIndices max(const Tensor& x, std::int64_t dim, bool keepdim = false);
ValuesAndIndices min(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);  ///< int64; the first of equals
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmax(const Tensor& x);  ///< index in the flattened tensor
Tensor argmin(const Tensor& x);
/// The k largest (or smallest) elements along dim, sorted, and their indices: both have the shape of x with
/// size k in dim. Of equal ones the lower index comes first and is chosen first. NaN counts as the greatest:
/// first among the largest, last among the smallest. The gradient goes to the chosen elements. Throws for k
/// outside 0..size; a scalar counts as a row of 1, of which k must be 1.
ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1, bool largest = true);
Tensor cumsum(const Tensor& x, std::int64_t dim);
/// The sum of x over what was broadcast to make it, back to `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);

// --- softmax (ops/softmax.cpp)
Tensor softmax(const Tensor& x, std::int64_t dim);  ///< e^{x-max} / Σ; NaN for a row of -inf, as PyTorch
Tensor log_softmax(const Tensor& x, std::int64_t dim);

// --- indexing (ops/index.cpp): indices int64, checked
/// Rows of weight [V, E] for ids of any shape → [.., E]. Rows `padding_idx` get no gradient.
Tensor embedding(const Tensor& weight, const Tensor& ids,
                 std::optional<std::int64_t> padding_idx = std::nullopt);
/// Entries index [N] of dimension dim; an index may repeat.
Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// out[i][j] = x[index[i][j]][j] along dim 0, likewise for others; index has the rank of x and fits it
/// elsewhere.
Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index);
/// x with source added at `index` along dim.
Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source);
/// The elements where mask (boolean, broadcast) is true, as one dimension.
Tensor masked_select(const Tensor& x, const Tensor& mask);

// --- dropout (ops/dropout.cpp)
/// Key of one dropout mask.
struct DropoutKey {
  std::uint64_t seed = 0;    ///< of the generator
  std::uint64_t stream = 0;  ///< of the module
  std::uint64_t call = 0;    ///< of the module's calls
};
/// Zeroes each element with probability p and scales the rest by 1 / (1 - p). Element i depends on (seed,
/// stream, call, i) alone.
Tensor dropout(const Tensor& x, double p, DropoutKey key);

// --- normalisation (ops/layer_norm.cpp)
/// (x - mean) / √(var + eps) · weight + bias over the last dims `normalized_shape`, biased variance; weight
/// and bias [normalized_shape] or undefined.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = Tensor(),
                  const Tensor& bias = Tensor(), double eps = 1e-5);

// --- losses (ops/loss.cpp)
/// Reduction of the elements of a loss.
enum class Reduction : std::uint8_t { none, mean, sum };
/// Options of cross_entropy.
struct CrossEntropyOptions {
  Tensor weight = {};                               ///< per class [C], constant
  std::optional<std::int64_t> ignore_index = -100;  ///< targets that count nowhere; nullopt: none
  double label_smoothing = 0;                       ///< in [0, 1]
  Reduction reduction = Reduction::mean;            ///< mean divides by the weight of the targets that count
};
/// -log softmax(x)[target]: x [N, C], [C] or [N, C, d1, …] scores; target int64 [N], [] or [N, d1, …], or
/// class probabilities of x's shape. A mean over no target is NaN, as in PyTorch.
Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options = {});
/// Options of nll_loss, as of cross_entropy.
struct NllLossOptions {
  Tensor weight = {};                               ///< per class [C], constant
  std::optional<std::int64_t> ignore_index = -100;  ///< targets that count nowhere; nullopt: none
  Reduction reduction = Reduction::mean;            ///< mean divides by the weight of the targets that count
};
/// -x[target] for log-probabilities x [N, C], [C] or [N, C, d1, …].
Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossOptions& options = {});
/// cross_entropy(linear(x, weight, bias), target) in blocks of rows: scores [N, V] never exist at once, and
/// the gradients are computed in the forward pass (kept for it: one dW). Rows that do not count cost nothing.
/// x [N, in], weight [V, in] of any layout, bias [V] or undefined, target [N]. Reduction::none has no
/// gradient to know ahead: it holds the scores.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options = {});
/// (x - target)², broadcast.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// -[t log σ(x) + (1 - t) log(1 - σ(x))], stable.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        Reduction reduction = Reduction::mean);

}  // namespace rill

#pragma GCC visibility pop

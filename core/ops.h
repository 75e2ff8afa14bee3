/// The catalogue of differentiable ops.
///
/// Conventions: x, a and b are float32 or float64 tensors of any layout, unless stated otherwise; all
/// operands of an op have the same dtype (no promotion; use `.to`). Operands of pointwise ops broadcast by
/// NumPy's rules. A negative `dim` counts from the end. Sizes of 0 are allowed. Results are new contiguous
/// tensors unless the op is a view. Names, options and formulas are PyTorch's. Every op throws rill::Error
/// "op: fact with values; remedy" for invalid shapes, dtypes or indices.
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
/// max(a, b); NaN where either is NaN. Where they are equal, each gets half of the gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
/// min(a, b); NaN and ties as in maximum.
Tensor minimum(const Tensor& a, const Tensor& b);

// With a scalar, which is a constant of the tensor's dtype.
Tensor add(const Tensor& a, double b);         ///< a + b
Tensor sub(const Tensor& a, double b);         ///< a - b
Tensor sub(double a, const Tensor& b);         ///< a - b
Tensor mul(const Tensor& a, double b);         ///< a · b
Tensor div(const Tensor& a, double b);         ///< a / b
Tensor div(double a, const Tensor& b);         ///< a / b
Tensor pow(const Tensor& x, double exponent);  ///< x^exponent; gradient 0 for exponent 0, also at x = 0

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }  ///< add(a, b)
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }  ///< sub(a, b)
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }  ///< mul(a, b)
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }  ///< div(a, b)
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }         ///< add(a, b)
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }         ///< sub(a, b)
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }         ///< mul(a, b)
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }         ///< div(a, b)
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }         ///< add(b, a)
inline Tensor operator-(double a, const Tensor& b) { return sub(a, b); }         ///< sub(a, b)
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }         ///< mul(b, a)
inline Tensor operator/(double a, const Tensor& b) { return div(a, b); }         ///< div(a, b)

// --- pointwise, one operand (ops/unary.cpp)
Tensor neg(const Tensor& x);         ///< -x
Tensor exp(const Tensor& x);         ///< e^x; infinity on overflow
Tensor log(const Tensor& x);         ///< natural logarithm; -infinity at 0, NaN below
Tensor log1p(const Tensor& x);       ///< log(1 + x)
Tensor sqrt(const Tensor& x);        ///< √x; NaN below 0
Tensor rsqrt(const Tensor& x);       ///< 1 / √x
Tensor square(const Tensor& x);      ///< x²
Tensor reciprocal(const Tensor& x);  ///< 1 / x
Tensor abs(const Tensor& x);         ///< |x|; gradient 0 at 0
Tensor sin(const Tensor& x);         ///< sine of radians
Tensor cos(const Tensor& x);         ///< cosine of radians
Tensor erf(const Tensor& x);         ///< 2/√π ∫₀ˣ e^{-t²} dt
Tensor sigmoid(const Tensor& x);     ///< 1 / (1 + e^{-x}); saturates without NaN
Tensor logsigmoid(const Tensor& x);  ///< log sigmoid(x), stable
Tensor tanh(const Tensor& x);        ///< hyperbolic tangent; saturates without NaN
Tensor relu(const Tensor& x);        ///< max(x, 0); gradient 0 at 0
/// x where x > 0, negative_slope · x elsewhere.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor silu(const Tensor& x);  ///< x · sigmoid(x)
/// The form of Φ in `gelu`: exact, or x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) (Hendrycks and Gimpel 2016).
enum class Approximate : std::uint8_t { none, tanh };
Tensor gelu(const Tensor& x, Approximate approximate = Approximate::none);  ///< x · Φ(x)
/// log(1 + e^{βx}) / β, and x where βx > threshold; β > 0.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// min(max(x, lo), hi) with at least one bound. The gradient is 1 within the bounds, inclusive, else 0.
Tensor clamp(const Tensor& x, std::optional<double> lo, std::optional<double> hi);
inline Tensor operator-(const Tensor& x) { return neg(x); }  ///< neg(x)

// --- selection and comparison (ops/compare.cpp)
/// mask ? a : b, all broadcast; mask boolean, a and b of the same dtype, any. Differentiable if that is
/// floating.
///
/// The branch not selected gets gradient 0, but the backward function of its own ops may turn that into NaN
/// (0 · ∞). Keep the argument of that branch in its domain with `clamp`: where(x <= 0, exp(x), 1 + x) has
/// gradient NaN at x = 100 in float32 (as in PyTorch), and
///
///   where(le(x, 0), exp(clamp(x, {}, 0)), 1 + x)
///
/// has gradient 1.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);
/// value where mask (boolean, broadcast to x) is true, else x. Filled elements get gradient 0.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

// Boolean results; operands of the same dtype, any, broadcast. Not differentiable. A scalar is compared in
// the tensor's dtype if that is floating, exactly otherwise.
Tensor eq(const Tensor& a, const Tensor& b);  ///< a == b
Tensor ne(const Tensor& a, const Tensor& b);  ///< a != b
Tensor lt(const Tensor& a, const Tensor& b);  ///< a < b
Tensor le(const Tensor& a, const Tensor& b);  ///< a <= b
Tensor gt(const Tensor& a, const Tensor& b);  ///< a > b
Tensor ge(const Tensor& a, const Tensor& b);  ///< a >= b
Tensor eq(const Tensor& a, double b);         ///< a == b
Tensor ne(const Tensor& a, double b);         ///< a != b
Tensor lt(const Tensor& a, double b);         ///< a < b
Tensor le(const Tensor& a, double b);         ///< a <= b
Tensor gt(const Tensor& a, double b);         ///< a > b
Tensor ge(const Tensor& a, double b);         ///< a >= b

// --- views (ops/view.cpp): results share the data of x; any dtype
/// The same elements in another shape; one size may be -1. A view where the strides allow it, a copy
/// otherwise.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Dimensions start … end (inclusive) as one; a scalar becomes [1].
Tensor flatten(const Tensor& x, std::int64_t start = 0, std::int64_t end = -1);
/// Dimension i of the result is dimension dims[i] of x.
Tensor permute(const Tensor& x, const Dims& dims);
/// Swaps two dimensions.
Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1);
/// `length` entries along dim from `start` (negative: from the end).
Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length);
/// Entries start, start + step, … below end. Bounds clamp as in Python, negative ones count from the end;
/// step > 0.
Tensor slice(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1);
/// Entry `index` along dim; the dimension is dropped.
Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index);
/// Expands dimensions of size 1 without copying; -1 keeps a size. The gradient is the sum over the expanded
/// dimensions.
Tensor expand(const Tensor& x, const Shape& shape);
/// Drops dimension dim when its size is 1.
Tensor squeeze(const Tensor& x, std::int64_t dim);
/// Drops every dimension of size 1.
Tensor squeeze(const Tensor& x);
/// Inserts a dimension of size 1 before dim.
Tensor unsqueeze(const Tensor& x, std::int64_t dim);
/// Chunks of `size` entries along dim; the last may be smaller.
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
/// Chunks of the given sizes along dim; they must add up to its size.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim = 0);
/// At most `chunks` chunks of equal size along dim; the last may be smaller.
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);

// --- copies (ops/copy.cpp); any dtype
Tensor contiguous(const Tensor& x);  ///< x itself where it is contiguous, else a copy
Tensor clone(const Tensor& x);       ///< a copy
/// Concatenates along an existing dimension; all other sizes and the dtype must agree. At least one tensor.
Tensor cat(const std::vector<Tensor>& tensors, std::int64_t dim = 0);
/// Concatenates tensors of one shape along a new dimension.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dim = 0);
/// Reverses the order along dims.
Tensor flip(const Tensor& x, const Dims& dims);
/// Tiles x repeats[d] times along dimension d; extra counts add leading dimensions.
Tensor repeat(const Tensor& x, const Dims& repeats);
/// The lower triangles of matrices [.., M, N]: 0 where j - i > diagonal.
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
/// Converts between dtypes: floating to int64 truncates (NaN and values out of range become the smallest
/// int64), to boolean is x != 0. Differentiable between floating dtypes.
Tensor to(const Tensor& x, DType dtype);

// --- products (ops/matmul.cpp)
/// NumPy's matmul: [K]·[K] → [], [M,K]·[K] → [M], [K]·[K,N] → [N], [..,M,K]·[..,K,N] → [..,M,N]; leading
/// sizes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);
/// [B,M,K]·[B,K,N] → [B,M,N].
Tensor bmm(const Tensor& a, const Tensor& b);
/// β c + α a·b with c broadcast to [M, N].
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
/// x·Wᵀ + bias: x [.., in], weight [out, in], bias [out] or undefined → [.., out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// --- reductions (ops/reduce.cpp, ops/extremes.cpp, ops/topk.cpp)
// Over `dims` (empty: all); keepdim keeps them with size 1. The order of summation depends on the sizes
// alone, and the error does not grow with the number of elements (docs/numerics.md).
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);   ///< Σ x; 0 over nothing
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< Σ x / n; NaN over nothing
Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< Π x; 1 over nothing
/// Σ (x - mean)² / max(n - correction, 0).
Tensor var(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// √var; gradient 0 where it is 0. PyTorch's `std`; a function of that name would be ambiguous with the
/// namespace after `using namespace rill`.
Tensor stddev(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// log Σ e^x, stable; -infinity over nothing, with gradient 0 where the result is -infinity.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);
/// (Σ |x|^p)^(1/p); p = 0 counts the nonzero elements, ±infinity gives the largest or smallest |x|. Gradient
/// 0 where the norm is 0.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);
/// The largest element; NaN propagates, and equal elements share the gradient evenly. Throws for no elements.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The smallest element, likewise.
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Elements and their positions along a dimension.
struct ValuesAndIndices {
  Tensor values;   ///< differentiable
  Tensor indices;  ///< int64
};
/// The largest element along dim and the index of its first occurrence, which gets the gradient. NaN
/// propagates.
ValuesAndIndices max(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// The smallest element along dim, likewise.
ValuesAndIndices min(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// The index along dim of the first occurrence of the largest element, int64. NaN counts as the largest.
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// The index along dim of the smallest element, likewise.
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmax(const Tensor& x);  ///< index in the flattened tensor
Tensor argmin(const Tensor& x);  ///< index in the flattened tensor
/// The k largest (or smallest) elements along dim, sorted, and their indices: the shape of x with size k in
/// dim. Of equal elements the lower index comes first. NaN counts as the largest. The selected elements get
/// the gradient. Throws for k outside 0..size; for a scalar k must be 1.
ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1, bool largest = true);
/// y[i] = Σ_{k <= i} x[k] along dim.
Tensor cumsum(const Tensor& x, std::int64_t dim);
/// Sums x over the dimensions that broadcasting added to `shape` or expanded: the adjoint of expand.
Tensor sum_to(const Tensor& x, const Shape& shape);

// --- softmax (ops/softmax.cpp)
Tensor softmax(const Tensor& x, std::int64_t dim);      ///< e^{x-max} / Σ; NaN for a row of -infinity
Tensor log_softmax(const Tensor& x, std::int64_t dim);  ///< x - logsumexp(x), stable

// --- indexing (ops/index.cpp); indices are int64 and checked
/// Rows of weight [V, E] for ids of any shape [..] → [.., E]. Row `padding_idx` gets no gradient.
Tensor embedding(const Tensor& weight, const Tensor& ids,
                 std::optional<std::int64_t> padding_idx = std::nullopt);
/// Entries index [N] along dim; an index may repeat.
Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// out[i][j] = x[index[i][j]][j] for dim 0, likewise for others. index has the rank of x and at most its
/// sizes outside dim.
Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index);
/// x with `source` added to the entries index [N] along dim; an index may repeat.
Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source);
/// The elements where mask (boolean, broadcast) is true, in row-major order: [count].
Tensor masked_select(const Tensor& x, const Tensor& mask);

// --- dropout (ops/dropout.cpp)
/// Identifies the random mask of one dropout call: a seed, one of its streams, and the index of the call.
struct DropoutKey {
  std::uint64_t seed = 0;    ///< of the generator
  std::uint64_t stream = 0;  ///< one for each layer
  std::uint64_t call = 0;    ///< incremented by each call
};
/// Zeroes each element with probability p in 0..1 and scales the others by 1 / (1 - p). The mask at element i
/// depends on (seed, stream, call, i) alone.
Tensor dropout(const Tensor& x, double p, DropoutKey key);

// --- normalisation (ops/layer_norm.cpp)
/// (x - mean) / √(var + eps) · weight + bias over the last dimensions `normalized_shape`, with the biased
/// variance; weight and bias [normalized_shape] or undefined. (Ba et al. 2016)
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = Tensor(),
                  const Tensor& bias = Tensor(), double eps = 1e-5);

// --- losses (ops/loss.cpp)
/// Reduction of the losses of elements or rows.
enum class Reduction : std::uint8_t { none, mean, sum };
/// Options of cross_entropy.
struct CrossEntropyOptions {
  Tensor weight = {};                               ///< per class [C], constant
  std::optional<std::int64_t> ignore_index = -100;  ///< targets that are ignored; nullopt: none
  double label_smoothing = 0;                       ///< in 0..1
  Reduction reduction = Reduction::mean;            ///< mean divides by the sum of the weights of the targets
};
/// -log softmax(x)[target]: scores x [N, C], [C] or [N, C, d1, …]; target int64 [N], [] or [N, d1, …], or
/// class probabilities of x's shape. A mean whose weights add up to 0 is NaN, as in PyTorch, with gradient 0.
Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options = {});
/// Options of nll_loss, as in CrossEntropyOptions.
struct NllLossOptions {
  Tensor weight = {};                               ///< per class [C], constant
  std::optional<std::int64_t> ignore_index = -100;  ///< targets that are ignored; nullopt: none
  Reduction reduction = Reduction::mean;            ///< mean divides by the sum of the weights of the targets
};
/// -x[target] for log-probabilities x [N, C], [C] or [N, C, d1, …]; target and mean as in cross_entropy.
Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossOptions& options = {});
/// cross_entropy(linear(x, weight, bias), target) in blocks of rows: the scores [N, V] are never materialized
/// as a whole, and the gradients are computed in the forward pass and kept. Ignored rows cost nothing. x [N,
/// in], weight [V, in] of any layout, bias [V] or undefined, target [N]. With Reduction::none the scores are
/// materialized.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options = {});
/// (x - target)²; x and target of one shape.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// -[t log σ(x) + (1 - t) log(1 - σ(x))], stable; x and target of one shape.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        Reduction reduction = Reduction::mean);

}  // namespace rill

#pragma GCC visibility pop

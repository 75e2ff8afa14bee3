/// Tensor ops.
///
/// Unless noted otherwise, x, a and b are float32 or float64 tensors of any layout, and all operands of an op
/// have the same dtype (no promotion; use `.to`). Operands of pointwise ops broadcast by NumPy's rules. A
/// negative `dim` counts from the end. Dimensions of size 0 are allowed. Results are new contiguous tensors
/// unless the op is a view. Names, options and formulas follow PyTorch. Every op throws rill::Error on
/// invalid shapes, dtypes or indices.
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
Tensor pow(const Tensor& a, const Tensor& b);  ///< a^b; at a = 0 <= b the gradient of b is 0
/// max(a, b); NaN where either is NaN. Ties pass half of the gradient to each operand.
Tensor maximum(const Tensor& a, const Tensor& b);
/// min(a, b); NaN and ties as in maximum.
Tensor minimum(const Tensor& a, const Tensor& b);

// With a scalar, a constant that is converted to the tensor's dtype.
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
Tensor log(const Tensor& x);         ///< natural logarithm; -infinity at 0, NaN below 0
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
/// Variant of gelu: exact, or x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) (Hendrycks and Gimpel 2016).
enum class Approximate : std::uint8_t { none, tanh };
/// x · Φ(x), where Φ is the standard normal distribution function.
Tensor gelu(const Tensor& x, Approximate approximate = Approximate::none);
/// log(1 + e^{βx}) / β, and x where βx > threshold; β > 0.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// min(max(x, lo), hi), with at least one bound. The gradient is 1 in [lo, hi] and 0 outside.
Tensor clamp(const Tensor& x, std::optional<double> lo, std::optional<double> hi);
inline Tensor operator-(const Tensor& x) { return neg(x); }  ///< neg(x)

// --- selection and comparison (ops/compare.cpp)
/// mask ? a : b, all broadcast; mask is boolean, a and b share any dtype. Differentiable for floating dtypes.
///
/// The branch not taken receives gradient 0, which its own backward may turn into NaN (0 · ∞). Clamp that
/// branch's input to its domain: at x = 100 in float32 the gradient of where(x <= 0, exp(x), 1 + x) is NaN
/// (as in PyTorch), and that of
///
///   where(le(x, 0), exp(clamp(x, {}, 0)), 1 + x)
///
/// is 1.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);
/// value where mask (boolean, broadcast to x) is true, else x. Filled elements receive gradient 0.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

// Boolean results, not differentiable; operands share any dtype and broadcast. A scalar is compared in the
// tensor's dtype if that is floating, exactly otherwise.
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

// --- views (ops/view.cpp); results share the data of x; any dtype
/// The same elements in another shape; one size may be -1 (inferred). A view if the strides allow it, else a
/// copy.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Merges dimensions start … end (inclusive) into one; a scalar becomes [1].
Tensor flatten(const Tensor& x, std::int64_t start = 0, std::int64_t end = -1);
/// Dimension i of the result is dimension dims[i] of x.
Tensor permute(const Tensor& x, const Dims& dims);
/// Swaps two dimensions.
Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1);
/// `length` entries along dim from `start`, which counts from the end if negative.
Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length);
/// Entries start, start + step, … below end along dim. Bounds are clamped and may be negative as in Python;
/// step > 0.
Tensor slice(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1);
/// Entry `index` along dim; removes the dimension.
Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index);
/// Broadcasts dimensions of size 1 without copying; -1 keeps a size. The gradient sums over the repeats.
Tensor expand(const Tensor& x, const Shape& shape);
/// Removes dimension dim if its size is 1.
Tensor squeeze(const Tensor& x, std::int64_t dim);
/// Removes all dimensions of size 1.
Tensor squeeze(const Tensor& x);
/// Inserts a dimension of size 1 before dim.
Tensor unsqueeze(const Tensor& x, std::int64_t dim);
/// Chunks of `size` entries along dim; the last may be smaller.
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
/// Chunks of the given sizes along dim, which must sum to the size of dim.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim = 0);
/// At most `chunks` chunks of equal size along dim; the last may be smaller.
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);

// --- copies (ops/copy.cpp); any dtype
Tensor contiguous(const Tensor& x);  ///< x itself if contiguous, else a copy
Tensor clone(const Tensor& x);       ///< a copy
/// Concatenates at least one tensor along an existing dimension; all other sizes and the dtype must match.
Tensor cat(const std::vector<Tensor>& tensors, std::int64_t dim = 0);
/// Concatenates tensors of the same shape along a new dimension.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dim = 0);
/// Reverses the order of entries along dims.
Tensor flip(const Tensor& x, const Dims& dims);
/// Tiles x repeats[d] times along dimension d; extra counts add leading dimensions.
Tensor repeat(const Tensor& x, const Dims& repeats);
/// Lower triangles of the matrices [.., M, N]: 0 where j - i > diagonal.
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
/// Converts to `dtype`. Floating to int64 truncates (NaN and out-of-range values become -2^63); boolean is
/// x != 0. Differentiable between floating dtypes.
Tensor to(const Tensor& x, DType dtype);

// --- products (ops/matmul.cpp)
/// Matrix product as in NumPy: [K]·[K] → [], [M,K]·[K] → [M], [K]·[K,N] → [N], [..,M,K]·[..,K,N] → [..,M,N];
/// leading dimensions broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);
/// Batched matrix product [B,M,K]·[B,K,N] → [B,M,N], without broadcasting.
Tensor bmm(const Tensor& a, const Tensor& b);
/// β·c + α·a·b: a [M, K], b [K, N], c broadcast to [M, N].
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
/// x·Wᵀ + bias: x [.., in], weight [out, in], bias [out] or undefined → [.., out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// --- reductions (ops/reduce.cpp, ops/extremes.cpp, ops/topk.cpp)
// They reduce `dims` (all if empty); keepdim keeps reduced dimensions with size 1. The order of summation
// depends only on the sizes, and the error does not grow with the number of elements (docs/numerics.md).
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);   ///< Σ x; 0 if empty
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< Σ x / n; NaN if empty
Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< Π x; 1 if empty
/// Σ (x - mean)² / max(n - correction, 0).
Tensor var(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// √var; gradient 0 where the result is 0. Corresponds to torch.std; a function named `std` would be
/// ambiguous after `using namespace rill`.
Tensor stddev(const Tensor& x, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// log Σ e^x, stable; -infinity if empty. The gradient is 0 where the result is -infinity.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);
/// (Σ |x|^p)^(1/p); p = 0 counts the nonzero elements, p = ±infinity is the largest or smallest |x|. The
/// gradient is 0 where the norm is 0.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);
/// The largest element. NaN propagates; ties share the gradient evenly. Throws if empty.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The smallest element; otherwise as amax.
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Elements and their indices along a dimension.
struct ValuesAndIndices {
  Tensor values;   ///< differentiable
  Tensor indices;  ///< int64
};
/// The largest element along dim and its first index, which receives the gradient. NaN propagates.
ValuesAndIndices max(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// The smallest element along dim; otherwise as max.
ValuesAndIndices min(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// int64 index along dim of the largest element, the first among equals. NaN counts as the largest.
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// int64 index along dim of the smallest element, the first among equals. NaN counts as the smallest.
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmax(const Tensor& x);  ///< index in the flattened tensor
Tensor argmin(const Tensor& x);  ///< index in the flattened tensor
/// The k largest (or smallest) elements along dim, sorted, and their indices; both have size k in dim. Ties
/// prefer the lower index. NaN counts as the largest. The gradient flows to the selected elements. Throws
/// unless 0 <= k <= size; for a scalar k must be 1.
ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1, bool largest = true);
/// y[i] = Σ_{k <= i} x[k] along dim.
Tensor cumsum(const Tensor& x, std::int64_t dim);
/// Sums x down to `shape`, over the dimensions that broadcasting added or expanded: the adjoint of expand.
Tensor sum_to(const Tensor& x, const Shape& shape);

// --- softmax (ops/softmax.cpp)
Tensor softmax(const Tensor& x, std::int64_t dim);      ///< e^{x-max} / Σ; NaN for a row of -infinity
Tensor log_softmax(const Tensor& x, std::int64_t dim);  ///< x - logsumexp(x), stable

// --- indexing (ops/index.cpp); indices are int64 and bounds-checked
/// Looks up rows of weight [V, E]: ids [..] → [.., E]. Row `padding_idx` receives no gradient.
Tensor embedding(const Tensor& weight, const Tensor& ids,
                 std::optional<std::int64_t> padding_idx = std::nullopt);
/// The entries along dim listed in index [N], which may repeat.
Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// out[i][j] = x[index[i][j]][j] for dim 0, and so on. index has the rank of x and, except in dim, sizes no
/// larger than those of x.
Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index);
/// A copy of x with source added at the entries along dim listed in index [N], which may repeat.
Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source);
/// The elements where mask (boolean, broadcast) is true, in row-major order, as a vector.
Tensor masked_select(const Tensor& x, const Tensor& mask);

// --- dropout (ops/dropout.cpp)
/// Identifies the random mask of one dropout call.
struct DropoutKey {
  std::uint64_t seed = 0;    ///< seed of the generator
  std::uint64_t stream = 0;  ///< stream of the seed, one per layer
  std::uint64_t call = 0;    ///< call counter
};
/// Zeroes each element with probability p in [0, 1] and scales the others by 1 / (1 - p). The mask of element
/// i depends only on (seed, stream, call, i).
Tensor dropout(const Tensor& x, double p, DropoutKey key);

// --- normalisation (ops/layer_norm.cpp)
/// (x - mean) / √(var + eps) · weight + bias over the trailing dimensions `normalized_shape`, with biased
/// variance (Ba et al. 2016). weight and bias have shape `normalized_shape` or are undefined.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = Tensor(),
                  const Tensor& bias = Tensor(), double eps = 1e-5);

// --- losses (ops/loss.cpp)
/// Reduction over the per-element or per-row losses.
enum class Reduction : std::uint8_t { none, mean, sum };
/// Options of cross_entropy.
struct CrossEntropyOptions {
  Tensor weight = {};                               ///< class weights [C], constant
  std::optional<std::int64_t> ignore_index = -100;  ///< target to ignore; nullopt for none
  double label_smoothing = 0;                       ///< in [0, 1]
  Reduction reduction = Reduction::mean;  ///< mean divides by the total weight of targets not ignored
};
/// -log softmax(x)[target] for logits x [N, C], [C] or [N, C, d1, …]. target is int64 [N], [] or [N, d1, …],
/// or class probabilities of x's shape. A mean over targets of total weight 0 is NaN, as in PyTorch, with
/// gradient 0.
Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options = {});
/// Options of nll_loss.
struct NllLossOptions {
  Tensor weight = {};                               ///< class weights [C], constant
  std::optional<std::int64_t> ignore_index = -100;  ///< target to ignore; nullopt for none
  Reduction reduction = Reduction::mean;  ///< mean divides by the total weight of targets not ignored
};
/// -x[target] for log-probabilities x [N, C], [C] or [N, C, d1, …]; target and mean as in cross_entropy.
Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossOptions& options = {});
/// cross_entropy(linear(x, weight, bias), target) for x [N, in], weight [V, in] of any layout, bias [V] or
/// undefined, target [N]. Works in blocks of rows, so that the logits [N, V] are never stored whole, and
/// computes the gradients in the forward pass. Ignored rows cost nothing. Reduction::none does store the
/// logits.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options = {});
/// (x - target)² for x and target of the same shape.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// -[t log σ(x) + (1 - t) log(1 - σ(x))], stable, for x and target t of the same shape.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        Reduction reduction = Reduction::mean);

}  // namespace rill

#pragma GCC visibility pop

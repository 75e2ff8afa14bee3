#include <rill/core/packed_matrix.h>

#include <algorithm>
#include <mutex>
#include <type_traits>
#include <vector>

#include <rill/core/kernels/amx.h>
#include <rill/core/kernels/packed.h>

namespace rill {
namespace {

/// Fewer rows leave most of a tile empty, while the layout for tiles is half as large again.
constexpr std::int64_t rows_for_tiles = 16;

template <class T>
bool on_tiles(std::int64_t rows) noexcept {
  return std::is_same_v<T, float> && rows >= rows_for_tiles && kernels::has_amx();
}

/// The packed forms of the views of one storage, of what it holds now.
template <class T>
class PackedForms final : public StorageCache {
 public:
  void drop() noexcept override {
    std::lock_guard lock(mutex_);
    forms_.clear();
  }

  std::shared_ptr<const PackedMatrix<T>> get(const Tensor& w, std::int64_t rows) {
    const TensorImpl& impl = w.impl();
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(forms_.begin(), forms_.end(), [&](const Form& form) {
      return form.offset == impl.offset && form.shape == impl.shape && form.strides == impl.strides &&
             form.tiles == on_tiles<T>(rows);
    });
    if (found != forms_.end()) return found->packed;
    const bool transposed = impl.strides[1] != 1 && impl.shape[1] != 1;
    const std::int64_t ld = std::max<std::int64_t>(transposed ? impl.strides[1] : impl.strides[0], 1);
    auto packed = std::make_shared<const PackedMatrix<T>>(impl.shape[0], impl.shape[1], transposed,
                                                          detail::raw<const T>(w), ld, rows);
    forms_.push_back({impl.offset, impl.shape, impl.strides, on_tiles<T>(rows), packed});
    return packed;
  }

 private:
  struct Form {
    std::int64_t offset;
    Shape shape;
    Strides strides;
    bool tiles;  // asked for
    std::shared_ptr<const PackedMatrix<T>> packed;
  };

  std::mutex mutex_;
  std::vector<Form> forms_;
};

/// The cache of w's storage, made on first use. A storage holds one dtype, so one cache type.
template <class T>
PackedForms<T>& forms_of(const Tensor& w) {
  std::atomic<StorageCache*>& slot = w.impl().storage->cache();
  StorageCache* present = slot.load(std::memory_order_acquire);
  if (!present) {
    auto fresh = std::make_unique<PackedForms<T>>();
    if (slot.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel))
      return *fresh.release();
  }
  return static_cast<PackedForms<T>&>(*present);
}

}  // namespace

std::int64_t least_rows_of_share(std::int64_t rows) noexcept {
  return on_tiles<float>(rows) ? rows_for_tiles : 1;
}

template <class T>
PackedMatrix<T>::PackedMatrix(std::int64_t k, std::int64_t n, bool transposed, const T* b, std::int64_t ldb,
                              std::int64_t rows)
    : k_(k), n_(n) {
  if constexpr (std::is_same_v<T, float>) {
    if (on_tiles<T>(rows)) {
      block_.emplace(static_cast<std::size_t>(kernels::amx_packed_size(k, n)));
      tiles_ = kernels::amx_pack(transposed, k, n, b, ldb, block_->data());
      if (tiles_) return;
    }
  }
  block_.emplace(static_cast<std::size_t>(kernels::packed_size<T>(k, n)) * sizeof(T));
  kernels::pack<T>(transposed, k, n, b, ldb, static_cast<T*>(block_->data()));
}

template <class T>
void PackedMatrix<T>::multiply(std::int64_t m, const T* a, std::int64_t lda, T beta, T* c,
                               std::int64_t ldc) const {
  if constexpr (std::is_same_v<T, float>) {
    if (tiles_) {
      const memory::Block workspace(static_cast<std::size_t>(kernels::amx_packed_workspace()));
      return kernels::amx_packed_gemm(m, n_, k_, a, lda, block_->data(), beta, c, ldc, workspace.data());
    }
  }
  kernels::packed_gemm<T>(m, n_, k_, a, lda, static_cast<const T*>(block_->data()), beta, c, ldc);
}

template <class T>
std::shared_ptr<const PackedMatrix<T>> packed(const Tensor& w, std::int64_t rows) {
  check(w.dim() == 2, "packed: a tensor of shape {} is not a matrix", w.shape());
  check(w.dtype() == dtype_of<T>, "packed: the matrix is {}, wanted {}", name(w.dtype()), name(dtype_of<T>));
  check(w.stride(0) == 1 || w.stride(1) == 1 || w.size(0) <= 1 || w.size(1) <= 1,
        "packed: a view with strides {} has no unit stride; use .contiguous()", w.strides());
  return forms_of<T>(w).get(w, rows);
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;
template std::shared_ptr<const PackedMatrix<float>> packed<float>(const Tensor&, std::int64_t);
template std::shared_ptr<const PackedMatrix<double>> packed<double>(const Tensor&, std::int64_t);

}  // namespace rill

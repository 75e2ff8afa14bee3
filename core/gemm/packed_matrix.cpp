#include <rill/core/gemm/packed_matrix.h>

#include <algorithm>
#include <mutex>
#include <type_traits>
#include <vector>

#include <rill/core/gemm/amx.h>
#include <rill/core/gemm/packed.h>
#include <rill/core/parallel/fork.h>

namespace rill {
namespace {

/// Fewer rows leave most of a tile empty, while the layout for tiles is half as large again.
constexpr std::int64_t rows_for_tiles = 16;

template <class T>
bool on_tiles(std::int64_t rows) noexcept {
  return std::is_same_v<T, float> && rows >= rows_for_tiles && kernels::has_amx();
}

/// Guards the lists of all storages, while one is read or changed, not while a matrix is packed.
constinit std::mutex forms_mutex;
[[maybe_unused]] const bool whole_over_forks = detail::hold_over_forks<forms_mutex>();

/// The packed forms of the views of one storage, of what it holds now.
template <class T>
class PackedForms final : public StorageCache {
 public:
  void drop() noexcept override {
    std::vector<Form> gone;  // let go of after the lock is
    std::lock_guard lock(forms_mutex);
    gone.swap(forms_);
  }

  std::shared_ptr<const PackedMatrix<T>> get(const Tensor& w, std::int64_t rows) {
    const TensorImpl& impl = w.impl();
    Form form{impl.offset, impl.shape, impl.strides, on_tiles<T>(rows), nullptr};
    {
      std::lock_guard lock(forms_mutex);
      if (auto packed = find(form)) return packed;
    }
    const std::uint32_t version = impl.storage->version();
    const bool transposed = impl.strides[1] != 1 && impl.shape[1] != 1;
    const std::int64_t ld = transposed ? impl.strides[1] : impl.strides[0];
    form.packed = std::make_shared<const PackedMatrix<T>>(impl.shape[0], impl.shape[1], transposed,
                                                          detail::raw<const T>(w), ld, rows);
    std::lock_guard lock(forms_mutex);
    if (auto packed = find(form)) return packed;  // another thread was faster
    if (impl.storage->version() == version) forms_.push_back(form);
    return form.packed;
  }

 private:
  struct Form {
    std::int64_t offset;
    Shape shape;
    Strides strides;
    bool tiles;  // asked for
    std::shared_ptr<const PackedMatrix<T>> packed;
  };

  /// What there is of the same view and layout, or null.
  std::shared_ptr<const PackedMatrix<T>> find(const Form& form) const {
    const auto found = std::find_if(forms_.begin(), forms_.end(), [&](const Form& present) {
      return present.offset == form.offset && present.shape == form.shape &&
             present.strides == form.strides && present.tiles == form.tiles;
    });
    return found != forms_.end() ? found->packed : nullptr;
  }

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

#include <rill/core/ops/class_targets.h>

#include <rill/core/kernels/reduce.h>

namespace rill::detail {

void check_class_weights(const char* op, const Tensor& weight, std::int64_t classes, DType dtype) {
  check(weight.shape() == Shape{classes}, "{}: the class weights are {}; {} classes need [{}]", op,
        weight.shape(), classes, classes);
  check(weight.dtype() == dtype, "{}: the class weights are {}, the scores {}; use .to({})", op,
        name(weight.dtype()), name(dtype), name(dtype));
}

ClassTargets::ClassTargets(const char* op, const Tensor& target, std::int64_t classes, DType dtype,
                           const Tensor& weight, std::optional<std::int64_t> ignore)
    : all_weights_(static_cast<double>(classes)) {
  check(target.dtype() == int64, "{}: class targets are {}, not int64; use .to(int64)", op,
        name(target.dtype()));
  if (weight.defined()) {
    check_class_weights(op, weight, classes, dtype);
    weight_ = weight.detach().clone();
    all_weights_ = sum(weight_).item();
  }
  ids_ = target.clone();
  auto* const ids = raw<std::int64_t>(ids_);
  for (std::int64_t i = 0; i < ids_.numel(); ++i) {
    if (ignore && ids[i] == *ignore) {
      ids[i] = -1;
      continue;
    }
    check(classes > 0, "{}: the scores have no classes", op);
    check(ids[i] >= 0 && ids[i] < classes,
          "{}: target {} at row {} is outside 0..{}; set ignore_index to skip it", op, ids[i], i,
          classes - 1);
    ++counted_;
    total_weight_ +=
        visit_floating(op, dtype, [&]<class T>(Type<T>) { return static_cast<double>(this->weight<T>(i)); });
  }
}

double ClassTargets::row_factor(Reduction reduction) const noexcept {
  if (reduction != Reduction::mean) return 1;
  return total_weight_ == 0 ? 0 : 1 / total_weight_;
}

Tensor reduced_loss(const Tensor& losses, Reduction reduction, double divisor) {
  if (reduction == Reduction::none) return losses;
  Tensor total = sum(losses);
  if (reduction == Reduction::mean) total.mul_(1 / divisor);
  return total;
}

}  // namespace rill::detail

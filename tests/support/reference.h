/// The reference values in tests/reference, one case at a time.
#pragma once

#include <string>

#include <rill/core/io/safetensors.h>
#include <rill/nn/module.h>

namespace test {

/// A case of a file: the tensors whose names begin with `prefix/`.
class Reference {
 public:
  Reference(const std::string& file, const std::string& prefix);

  /// The tensor of that name, or an undefined tensor.
  rill::Tensor operator()(const std::string& name) const;
  /// The input `in.name` as a leaf, or an undefined tensor.
  rill::Tensor input(const std::string& name) const;
  /// Converts m to float64 and loads `param.…`; names and shapes must match.
  void load_into(rill::nn::Module& m) const;
  /// Checks m's gradients against `grad.param.…`, all of which must exist.
  void check_gradients(const rill::nn::Module& m) const;
  /// Checks the gradient of an input against `grad.in.name`.
  void check_gradient(const rill::Tensor& input, const std::string& name) const;
  /// Checks a result against the tensor of that name.
  void check_equal(const rill::Tensor& got, const std::string& name) const;

 private:
  rill::SafetensorsFile file_;
  std::string prefix_;
};

}  // namespace test

/// A reference set: index.json and the safetensors files it names.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rill/core/io/safetensors.h>

namespace rill::parity {

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

/// One entry of the index.
struct Case {
  std::string id, file, prefix, kind, op;
  nlohmann::json args;
  std::map<std::string, std::vector<std::string>, std::less<>> tensors;  ///< names by role
  Tolerance tolerance;
  std::optional<double> float32_error;       ///< of PyTorch's own float32
  std::optional<double> float32_loss_error;  ///< the same for the losses of a training run
  std::string loss;                          ///< the output whose gradients are given; empty: sum(out * gout)
  bool optional = false;

  const std::vector<std::string>& names(std::string_view role) const;
  bool has(std::string_view role, std::string_view name) const;
};

class ReferenceSet {
 public:
  /// Reads the index. Throws Error naming the file and what is wrong with it: missing, no JSON, another
  /// format, a case without one of its fields, an id that comes twice.
  explicit ReferenceSet(std::filesystem::path directory);

  const std::vector<Case>& cases() const noexcept { return cases_; }

  /// The stored tensor `role.name` of a case, float64, int64 or boolean. Throws Error when it or its file is
  /// missing.
  const Tensor& tensor(const Case& c, std::string_view role, std::string_view name) const;

 private:
  std::filesystem::path directory_;
  std::vector<Case> cases_;
  mutable std::map<std::string, SafetensorsFile, std::less<>> files_;  // read when first needed
};

}  // namespace rill::parity

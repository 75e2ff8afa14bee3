/// The log of a training run, one record per epoch.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace translator {

struct EpochRecord {
  std::int64_t epoch = 0;
  double train_loss = 0;  ///< label smoothing included, so higher than the loss itself
  double valid_loss = std::numeric_limits<double>::quiet_NaN();  ///< NaN without validation pairs
  double valid_bleu = std::numeric_limits<double>::quiet_NaN();
  double lr = 0;
  double tokens_per_s = 0;
  double seconds = 0;
  std::int64_t skipped_steps = 0;  ///< in all epochs so far
};

nlohmann::json to_json(const EpochRecord& record);
EpochRecord epoch_record_from_json(const nlohmann::json& json);

/// The records as CSV with a header line; fields of absent figures are empty.
std::string to_csv(std::span<const EpochRecord> history);

}  // namespace translator

#include <translator/train/training_log.h>

#include <cmath>

#include <fmt/format.h>

#include <translator/text/json.h>

namespace translator {

nlohmann::json to_json(const EpochRecord& r) {
  return {{"epoch", r.epoch},
          {"train_loss", r.train_loss},
          {"valid_loss", number_or_null(r.valid_loss)},
          {"valid_bleu", number_or_null(r.valid_bleu)},
          {"lr", r.lr},
          {"tokens_per_s", r.tokens_per_s},
          {"seconds", r.seconds},
          {"skipped_steps", r.skipped_steps}};
}

EpochRecord epoch_record_from_json(const nlohmann::json& j) {
  const auto number = [&](const char* name) { return j.at(name).is_null() ? NAN : j.at(name).get<double>(); };
  return {j.at("epoch"), j.at("train_loss"),   number("valid_loss"), number("valid_bleu"),
          j.at("lr"),    j.at("tokens_per_s"), j.at("seconds"),      j.at("skipped_steps")};
}

std::string to_csv(std::span<const EpochRecord> history) {
  std::string csv =
      "epoch,train_loss,valid_loss,valid_perplexity,valid_bleu,lr,tokens_per_s,seconds,skipped_steps\n";
  for (const EpochRecord& r : history) {
    const std::string valid = std::isnan(r.valid_loss) ? ",,"
                                                       : fmt::format("{:.6f},{:.4f},{:.3f}", r.valid_loss,
                                                                     std::exp(r.valid_loss), r.valid_bleu);
    csv += fmt::format("{},{:.6f},{},{:.6g},{:.1f},{:.2f},{}\n", r.epoch, r.train_loss, valid, r.lr,
                       r.tokens_per_s, r.seconds, r.skipped_steps);
  }
  return csv;
}

}  // namespace translator

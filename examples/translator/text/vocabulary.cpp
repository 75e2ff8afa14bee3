#include <translator/text/vocabulary.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include <rill/core/error.h>
#include <translator/text/json.h>

namespace translator {
namespace {

constexpr std::array<std::string_view, Vocabulary::specials> special_texts = {"<pad>", "<s>", "</s>",
                                                                              Vocabulary::unknown_text};

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  ids_.reserve(words_.size());
  for (std::size_t i = 0; i < words_.size(); ++i) {
    rill::check(!words_[i].empty(), "vocabulary: word {} is empty", i);
    const bool added = ids_.emplace(words_[i], specials + static_cast<std::int64_t>(i)).second;
    rill::check(added, "vocabulary: '{}' occurs twice", printable(words_[i]));
  }
}

std::int64_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? unknown : found->second;
}

std::string_view Vocabulary::text(std::int64_t id) const {
  rill::check(id >= 0 && id < size(), "vocabulary: id {} is outside 0..{}", id, size() - 1);
  const auto i = static_cast<std::size_t>(id);
  return id < specials ? special_texts[i] : std::string_view(words_[i - specials]);
}

std::vector<std::int64_t> Vocabulary::encode(const Tokens& tokens) const {
  std::vector<std::int64_t> ids;
  ids.reserve(tokens.size() + 1);
  for (const std::string& token : tokens) {
    ids.push_back(id(token));
  }
  ids.push_back(end);
  return ids;
}

Tokens Vocabulary::decode(std::span<const std::int64_t> ids) const {
  Tokens tokens;
  for (const std::int64_t id : ids) {
    if (id == end) {
      break;
    }
    if (id != pad && id != start) {
      tokens.emplace_back(text(id));
    }
  }
  return tokens;
}

nlohmann::json Vocabulary::to_json() const {
  return {{"format", "rill-vocabulary"}, {"version", 1}, {"words", words_}};
}

Vocabulary Vocabulary::from_json(const nlohmann::json& json, std::string_view where) {
  Fields fields(json, std::string(where));
  const std::string format = fields.string("format");
  rill::check(format == "rill-vocabulary", "{}: the format is '{}', not 'rill-vocabulary'", where,
              printable(format));
  fields.integer("version", 1, 1);
  const nlohmann::json& list = fields.value("words");
  fields.finish();
  rill::check(list.is_array(), "{}: 'words' is no list", where);
  std::vector<std::string> words;
  words.reserve(list.size());
  for (const nlohmann::json& word : list) {
    rill::check(word.is_string(), "{}: word {} is no text", where, words.size());
    words.push_back(word.get<std::string>());
  }
  try {
    return Vocabulary(std::move(words));
  } catch (const rill::Error& error) {
    rill::fail("{}: {}", where, error.what());
  }
}

void WordCounter::add(const Tokens& tokens) {
  for (const std::string& token : tokens) {
    ++counts_[token];
  }
  tokens_ += static_cast<std::int64_t>(tokens.size());
}

Vocabulary WordCounter::vocabulary(std::int64_t min_count) const {
  std::vector<std::pair<std::int64_t, std::string_view>> order;
  for (const auto& [word, count] : counts_) {
    if (count >= min_count) {
      order.emplace_back(-count, word);
    }
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> words;
  words.reserve(order.size());
  for (const auto& entry : order) {
    words.emplace_back(entry.second);
  }
  return Vocabulary(std::move(words));
}

}  // namespace translator
